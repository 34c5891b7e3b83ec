package oidc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

var sources = Sources{
	ReadFile: func(path string) ([]byte, error) {
		if path == "secret.txt" {
			return []byte("from the file\r\nmore\n"), nil
		}
		return nil, os.ErrNotExist
	},
	LookupEnv: func(name string) (string, bool) { return "from the environment", name == "SECRET" },
}

const complete = `
issuers:
- id: staff
  name: Example Ltd
  issuer: https://login.example.org/realms/staff
  client_id: fanfare
  client_secret_file: secret.txt
  scopes: [openid, profile, email, groups]
  claims: {name: preferred_username, email: mail, email_verified: xms_edov}
- id: local
  name: This machine
  issuer: http://127.0.0.1:9999
  client_id: fanfare
roles:
- {issuer: "https://login.example.org/realms/staff", claim: groups, value: fanfare-admins, role: admin}
`

func TestAFileOfIssuersIsRead(t *testing.T) {
	s, err := Parse([]byte(complete), sources)
	if err != nil {
		t.Fatal(err)
	}
	want := "[{staff Example Ltd https://login.example.org/realms/staff fanfare [profile email groups] {preferred_username mail xms_edov} from the file} " +
		"{local This machine http://127.0.0.1:9999 fanfare [profile email] {name email email_verified} }]"
	if got := fmt.Sprint(s.Issuers); got != want {
		t.Errorf("the issuers are %s", got)
	}
	if len(s.Roles) != 1 || s.Roles[0] != (catalog.RoleGrant{Issuer: s.URLs()[0], Claim: "groups", Value: "fanfare-admins", Role: "admin"}) {
		t.Errorf("the roles are %+v", s.Roles)
	}
	s, err = Parse([]byte(strings.Replace(complete, "client_secret_file: secret.txt", "client_secret_env: SECRET", 1)), sources)
	if err != nil || s.Issuers[0].secret != "from the environment" {
		t.Errorf("%v", err)
	}
}

func TestAWrongFileOfIssuersIsRefusedWithThePlace(t *testing.T) {
	for name, c := range map[string]struct{ old, new, pointer, says string }{
		"no issuer":              {complete, "issuers: []", "/issuers", "0 issuers"},
		"empty":                  {complete, "", "", "one YAML document"},
		"a list":                 {complete, "- a", "", ""},
		"an unknown field":       {"client_id: fanfare\n", "client_id: fanfare\n  secret: x\n", "/issuers", "unknown field"},
		"plain HTTP":             {"https://login.example.org/realms/staff\n", "http://login.example.org\n", "/issuers/0/issuer", "https://"},
		"no URL":                 {"https://login.example.org/realms/staff\n", "login\n", "/issuers/0/issuer", "not the URL"},
		"a URL with a query":     {"https://login.example.org/realms/staff\n", "https://a.example/?x\n", "/issuers/0/issuer", "not the URL"},
		"a user in the URL":      {"https://login.example.org/realms/staff\n", "https://a@b.example\n", "/issuers/0/issuer", "not the URL"},
		"the id of the callback": {"id: staff", "id: callback", "/issuers/0/id", "callback"},
		"an id with a slash":     {"id: staff", "id: a/b", "/issuers/0/id", "a/b"},
		"an id twice":            {"id: local", "id: staff", "/issuers/1/id", "two issuers"},
		"an issuer twice":        {"http://127.0.0.1:9999", "https://login.example.org/realms/staff", "/issuers/1/issuer", "two entries"},
		"no name":                {"name: This machine", "name: ''", "/issuers/1/name", "valid name"},
		"a name of two lines":    {"name: This machine", `name: "a\nb"`, "/issuers/1/name", "valid name"},
		"no client":              {"client_id: fanfare\nroles", "client_id: ''\nroles", "/issuers/1/client_id", "client id"},
		"a missing file":         {"secret.txt", "none.txt", "/issuers/0/client_secret_file", "not exist"},
		"a missing variable":     {"client_secret_file: secret.txt", "client_secret_env: NONE", "/issuers/0/client_secret_env", "NONE"},
		"two secrets":            {"client_secret_file: secret.txt", "client_secret_file: secret.txt\n  client_secret_env: SECRET", "/issuers/0/client_secret_env", "both"},
		"a scope with a space":   {"groups]", "'a b']", "/issuers/0/scopes", "valid"},
		"an unknown role":        {"role: admin", "role: root", "/roles/0/role", "unknown role"},
		"a role without a value": {"value: fanfare-admins", "value: ''", "/roles/0", "value is missing"},
		"another issuer":         {`issuer: "https://login.example.org/realms/staff", claim`, `issuer: "https://other.example.org", claim`, "/roles/0/issuer", "not an issuer in this file"},
	} {
		_, err := Parse([]byte(strings.Replace(complete, c.old, c.new, 1)), sources)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Code != fanfare.Invalid || !strings.HasPrefix(e.Pointer, c.pointer) || !strings.Contains(e.Message+e.Hint, c.says) || strings.HasPrefix(c.pointer, "/issuers/") && e.Line == 0 {
			t.Errorf("%s: %+v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "from the") {
			t.Errorf("%s shows a secret: %v", name, err)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none.yaml"), sources); !strings.Contains(fmt.Sprint(err), "oidc") {
		t.Errorf("a missing file: %v", err)
	}
}

func TestClaimsAreFound(t *testing.T) {
	stated := claims{}
	for name, text := range map[string]string{"groups": `["a","b",7,true,null,{"x":1},""]`, "one": `"a"`, "realm_access": `{"roles":["r"],"deep":{"er":"d"}}`, "https://example.org/roles": `["u"]`, "a.b": `"exact"`, "a": `{"b":"nested"}`, "no": `{"x":1}`, "null": `null`} {
		stated[name] = []byte(text)
	}
	for name, want := range map[string]string{"groups": "[a b 7 true]", "one": "[a]", "realm_access.roles": "[r]", "realm_access.deep.er": "[d]", "https://example.org/roles": "[u]", "a.b": "[exact]", "no": "[]", "null": "[]", "missing": "[]", "one.x": "[]", ".": "[]"} {
		if got := fmt.Sprint(stated.values(name)); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestOnlyAVerifiedMailAddressIsUsed(t *testing.T) {
	names := &ClaimNames{"name", "email", "email_verified"}
	for _, c := range []struct{ mail, verified, want string }{
		{`"ada@example.org"`, `true`, "ada@example.org"}, {`"ada@example.org"`, `"true"`, "ada@example.org"}, {`"ada@example.org"`, `1`, "ada@example.org"},
		{`"ada@example.org"`, `false`, ""}, {`"ada@example.org"`, `"false"`, ""}, {`"ada@example.org"`, `null`, ""}, {`"ada@example.org"`, `[true]`, ""},
		{`"Ada <ada@example.org>"`, `true`, ""}, {`"ada"`, `true`, ""}, {`["ada@example.org"]`, `true`, ""}, {`"a@b.example\nc"`, `true`, ""}, {`"\"a b\"@example.org"`, `true`, ""},
	} {
		if got := (claims{"email": []byte(c.mail), "email_verified": []byte(c.verified)}).verifiedMail(names); got != c.want {
			t.Errorf("%s, verified: %s: %q", c.mail, c.verified, got)
		}
	}
	if got := (claims{"email": []byte(`"ada@example.org"`)}).verifiedMail(names); got != "" {
		t.Errorf("without the claim: %q", got)
	}
}

// The examples of the documentation are valid files.
func TestTheExamplesOfTheGuideAreValid(t *testing.T) {
	page, err := os.ReadFile("../../../docs/how-to/openid-connect.md")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, block := range strings.Split(string(page), "```yaml\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(text, "issuers:") {
			continue
		}
		read++
		secrets := Sources{ReadFile: func(string) ([]byte, error) { return []byte("x"), nil }, LookupEnv: func(string) (string, bool) { return "x", true }}
		if s, err := Parse([]byte(text), secrets); err != nil || len(s.Roles) == 0 {
			t.Errorf("%v in\n%s", err, text)
		}
	}
	if read != 3 {
		t.Errorf("the guide has %d examples", read)
	}
}

func FuzzAFileOfIssuersNeverPanics(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte("issuers: [~]\nroles: [~, {}]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := Parse(b, sources); err != nil {
			if _, ok := errors.AsType[*fanfare.Error](err); !ok {
				t.Errorf("%T is not for users", err)
			}
		}
	})
}
