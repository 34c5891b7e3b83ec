package dnstest

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
)

func TestItAnswersForWhatItKnows(t *testing.T) {
	long := strings.Repeat("a long text ", 40)
	r := (&Server{
		Texts:  map[string][]string{"a.dev": {"one", long}},
		Hosts:  map[string]string{"mx.a.dev": "192.0.2.1"},
		Mails:  map[string][]string{"a.dev": {"first.a.dev", "second.a.dev"}},
		Broken: map[string]bool{"b.dev": true},
	}).Resolver(t)
	if texts, err := r.LookupTXT(t.Context(), "A.dev."); err != nil || !slices.Equal(texts, []string{"one", long}) {
		t.Errorf("%v, %v", texts, err)
	}
	if hosts, err := r.LookupHost(t.Context(), "mx.a.dev."); err != nil || !slices.Equal(hosts, []string{"192.0.2.1"}) {
		t.Errorf("%v, %v", hosts, err)
	}
	if mails, err := r.LookupMX(t.Context(), "a.dev."); err != nil || len(mails) != 2 || mails[0].Host != "first.a.dev." {
		t.Errorf("%v, %v", mails, err)
	}
	for name, missing := range map[string]bool{"c.dev.": true, "mx.a.dev.": true, "b.dev.": false} {
		_, err := r.LookupTXT(t.Context(), name)
		if e, ok := errors.AsType[*net.DNSError](err); !ok || e.IsNotFound != missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}
