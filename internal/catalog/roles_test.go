package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
)

func TestARoleIsASetOfScopes(t *testing.T) {
	for names, want := range map[string]string{
		"": "", "viewer": "read", "sender": "publish, subscribe, read", "approver": "read, approve", "admin": "admin",
		"sender approver": "publish, subscribe, read, approve", "viewer admin": "admin, read",
	} {
		var roles catalog.Roles
		for _, name := range strings.Fields(names) {
			role, ok := catalog.ParseRole(name)
			if !ok {
				t.Errorf("%s is not a role", name)
			}
			roles |= role
		}
		if got := roles.Scopes().String(); got != want || strings.Join(roles.Names(), " ") != names {
			t.Errorf("%q has the scopes %q and the names %v, want %q", names, got, roles.Names(), want)
		}
	}
	if _, ok := catalog.ParseRole("Admin"); ok {
		t.Error("the names of roles do not depend on case")
	}
}

func TestOnlyEncryptedIssuersAreAccepted(t *testing.T) {
	for text, good := range map[string]bool{
		"https://login.example.org": true, "https://login.example.org/realms/a": true, "https://10.0.0.1:8443": true, "http://localhost:9999": true, "http://127.0.0.1": true, "http://[::1]:80/x": true,
		"http://login.example.org": false, "http://127.0.0.1.example.org": false, "http://localhost.example.org": false, "ftp://localhost": false, "https://": false, "https://:443": false, "//a.example": false, "a.example": false,
		"https://a.example?x": false, "https://a.example?": false, "https://a.example#x": false, "https://u@a.example": false, "javascript:alert(1)": false, "": false,
	} {
		if problem, hint := catalog.CheckIssuerURL(text); (problem == "") != good || good != (hint == "") {
			t.Errorf("%q: %q %q", text, problem, hint)
		}
	}
}

// A person cannot give themselves a name that looks like the mail address of somebody else.
func TestATitleOfAPersonCannotBeImitated(t *testing.T) {
	for name, want := range map[string]string{
		"Ada Example": "Ada Example", " Ada\t Example\n": "Ada Example", "Bob <bob@example.org> (https://a.example)": "Bob bob@example.org https://a.example", "a\u202eb": "a b", "\x00\x1b[31m": "[31m", "\xff": "", strings.Repeat("é", 300): strings.Repeat("é", 100),
	} {
		if got := catalog.PersonName(name); got != want {
			t.Errorf("%q becomes %q", name, got)
		}
	}
	for want, p := range map[string]catalog.Principal{
		"Ada <ada@example.org> (https://a.example)": {Name: "Ada", Owner: "ada@example.org", Issuer: "https://a.example", Subject: "1"},
		"Ada (https://a.example, 1)":                {Name: "Ada", Issuer: "https://a.example", Subject: "1"},
		"(https://a.example, 1)":                    {Issuer: "https://a.example", Subject: "1"},
		"<ada@example.org> (https://a.example)":     {Owner: "ada@example.org", Issuer: "https://a.example", Subject: "1"},
		"key-1 (editors)":                           {KeyID: "key-1", Name: "editors"},
		"key-1":                                     {KeyID: "key-1", Owner: "ada@example.org"},
	} {
		if got := p.Title(); got != want {
			t.Errorf("%+v is %q", p, got)
		}
	}
	if got := []string{catalog.Principal{}.ID(), catalog.Principal{KeyID: "key-1"}.ID(), catalog.Principal{Issuer: "i", Subject: "s", Owner: "o"}.ID()}; fmt.Sprintf("%q", got) != `["" "key key-1" "person i s"]` {
		t.Errorf("the ids are %q", got)
	}
}
