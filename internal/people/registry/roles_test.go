package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestRolesOfPeopleAreInTheDocumentOfTheirService(t *testing.T) {
	place := storetest.Place(t)
	r, _ := openAt(t, place)
	change := func(tenant, text string) ([]string, error) {
		d, err := document.ParseDocument([]byte(text), "")
		if err != nil {
			return nil, err
		}
		diff, err := r.Apply(audit.WithActor(context.Background(), audit.Actor{KeyID: "key-1", Tenant: tenant}), d)
		return diff.Notes, err
	}
	const news = "service: news\nroles:\n- {issuer: \"https://login.example.org\", claim: groups, value: editors, role: sender}\n- {issuer: \"https://login.example.org\", claim: email, value: ada@example.org, role: admin}\n"
	for _, c := range []struct{ text, pointer, says string }{
		{"service: news\nroles: [{issuer: \"http://login.example.org\", claim: groups, value: editors, role: sender}]\n", "/roles/0/issuer", "https://"},
		{"service: news\nroles: [{issuer: staff, claim: groups, value: editors, role: sender}]\n", "/roles/0/issuer", "not the URL of an issuer"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: groups, value: editors, role: root}]\n", "/roles/0/role", "use viewer, sender, approver, admin"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: groups, role: viewer}]\n", "/roles/0", "value is missing"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: groups, value: \"a\\nb\", role: viewer}]\n", "/roles/0/value", "line break"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: groups, value: a, role: viewer, service: games}]\n", "/roles/0/service", "unknown field"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: c, value: a, role: viewer}, {issuer: \"https://a.example\", claim: c, value: a, role: viewer}]\n", "/roles/1", "twice"},
		{"service: news\nroles: [{issuer: \"https://a.example\", claim: c, value: " + strings.Repeat("v", 501) + ", role: viewer}]\n", "/roles/0/value", "at most 500"},
		{"service: news\nroles: admin\n", "/roles", "must be a list"},
	} {
		_, err := change("", c.text)
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Code != fanfare.Invalid || e.Pointer != c.pointer || e.Line == 0 || !strings.Contains(e.Message+e.Hint, c.says) {
			t.Errorf("%s: %+v", c.text, err)
		}
	}
	notes, err := change("", news)
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "does not know this issuer") {
		t.Errorf("%q %v", notes, err)
	}
	if _, err := change("news", strings.Replace(news, "sender", "viewer", 1)); err != nil {
		t.Errorf("an administrator of the service changes its roles: %v", err)
	}
	want := "[{https://login.example.org groups editors viewer} {https://login.example.org email ada@example.org admin}]"
	if got := fmt.Sprint(r.Configuration().Service("news").Roles); got != want {
		t.Errorf("the roles are %s", got)
	}
	if _, err := change("", "service: news\ntitle: News\n"); err != nil {
		t.Error(err)
	}
	entries, _, err := r.Audit(t.Context(), audit.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.Contains(string(e.Detail), "@") {
			t.Errorf("the audit log has an address: %s", e.Detail)
		}
	}
	r.Close()
	r, _ = openAt(t, place)
	if got := fmt.Sprint(r.Configuration().Service("news").Roles); got != want {
		t.Errorf("after a restart, the roles are %s", got)
	}
	if _, err := change("", "service: news\nroles: []\n"); err != nil || len(r.Configuration().Service("news").Roles) != 0 {
		t.Errorf("the roles are not removed: %v", err)
	}
}
