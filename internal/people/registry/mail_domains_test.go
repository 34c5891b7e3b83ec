package registry_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestAMailDomainBelongsToOneService(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	change := func(tenant, text string) error {
		d, err := document.ParseDocument([]byte(text), "")
		if err != nil {
			return err
		}
		_, err = r.Apply(audit.WithActor(context.Background(), audit.Actor{KeyID: "key-1", Tenant: tenant}), d)
		return err
	}
	const domains = "service: notify\nmail_domains:\n- {domain: example.org, catch_all: office@example.org}\n- {domain: xn--mnchen-3ya.example}\n"
	for _, c := range []struct {
		tenant, text string
		code         fanfare.Code
		pointer      string
	}{
		{"notify", domains, fanfare.Forbidden, "/mail_domains"},
		{"", domains, "", ""},
		{"notify", domains, "", ""},                          // nothing changes
		{"notify", "service: notify\ntitle: News\n", "", ""}, // the domains are not in the document
		{"notify", "service: notify\nmail_domains: []\n", fanfare.Forbidden, "/mail_domains"},
		{"", "service: other\nmail_domains: [{domain: a.example}, {domain: example.org}]\n", fanfare.Conflict, "/mail_domains/1/domain"},
		{"", "service: other\nmail_domains: [{domain: sub.example.org}]\n", "", ""},
		{"", "service: third\nmail_domains: [{domain: m\u00fcnchen.example}]\n", fanfare.Invalid, "/mail_domains/0/domain"},
		{"", "service: third\nmail_domains: [{domain: example.net, catch_all: info@m\u00fcnchen.example}]\n", fanfare.Invalid, "/mail_domains/0"},
		{"", "service: third\nmail_domains: [{domain: xn--mnchen-3ya.example, catch_all: info@m\u00fcnchen.example}]\n", fanfare.Conflict, "/mail_domains/0/domain"},
	} {
		err := change(c.tenant, c.text)
		if e, _ := errors.AsType[*fanfare.Error](err); c.code == "" && err != nil || c.code != "" && (e == nil || e.Code != c.code || e.Pointer != c.pointer || e.Line == 0) {
			t.Errorf("%q by %q: %+v", c.text, c.tenant, err)
		}
	}
	want := []catalog.MailDomain{{Domain: "example.org", CatchAll: "office@example.org"}, {Domain: "xn--mnchen-3ya.example"}}
	if got := r.Configuration().Service("notify").MailDomains; !slices.Equal(got, want) {
		t.Errorf("the domains are %+v", got)
	}
	if r.Configuration().Service("third") != nil {
		t.Error("a refused document created its service")
	}
	r.Close()
	r, _ = openAt(t, place)
	if got := r.Configuration().Service("notify").MailDomains; !slices.Equal(got, want) {
		t.Errorf("after a restart, the domains are %+v", got)
	}
	if err := change("", "service: notify\nmail_domains: []\n"); err != nil {
		t.Error(err)
	}
	if err := change("", "service: third\nmail_domains: [{domain: example.org}]\n"); err != nil {
		t.Error("the domain is not free:", err)
	}
	list := strings.Repeat("- domain: a.example\n", 1)
	for i := range 1001 {
		list += "- domain: d" + strings.Repeat("x", i%50) + "-" + string(rune('a'+i%26)) + ".example\n"
	}
	if err := change("", "service: many\nmail_domains:\n"+list); fanfare.CodeOf(err) != fanfare.Invalid {
		t.Errorf("too many domains: %v", err)
	}
}
