package e2e

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/issuer"
)

// issuerFile writes the settings of an issuer, of whose people the group operators may read everything, and returns the flags for them.
func issuerFile(t *testing.T, i *issuer.Issuer) []string {
	t.Helper()
	dir := t.TempDir()
	file, secret := filepath.Join(dir, "oidc.yaml"), filepath.Join(dir, "secret")
	text := fmt.Sprintf("issuers:\n- {id: staff, name: Staff, issuer: %q, client_id: %s, client_secret_file: %q}\nroles:\n- {issuer: %q, claim: groups, value: operators, role: viewer}\n", i.URL, issuer.ClientID, secret, i.URL)
	for path, content := range map[string]string{file: text, secret: issuer.ClientSecret + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"--oidc", file}
}

// grant gives the people of an issuer roles in a service: role by group.
func (s *server) grant(i *issuer.Issuer, service string, groups map[string]string) {
	s.t.Helper()
	var roles strings.Builder
	for group, role := range groups {
		fmt.Fprintf(&roles, "- {issuer: %q, claim: groups, value: %s, role: %s}\n", i.URL, group, role)
	}
	named := *s.http
	named.service = service
	named.must(200, "POST", "/v1/apply", yaml, "service: "+service+"\nroles:\n"+roles.String())
}

// signIn signs in a person with groups, as a browser does, and returns a caller that has only the cookie.
func (s *server) signIn(i *issuer.Issuer, groups ...string) *caller {
	s.t.Helper()
	i.Change(func(state *issuer.State) {
		state.Claims["groups"], state.Claims["sub"] = groups, strings.Join(groups, "-")
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &caller{t: s.t, url: s.url, http: &http.Client{Timeout: patience, Jar: jar}}
	c.must(200, "GET", "/console/sign-in/oidc/staff", "", "")
	c.must(200, "GET", "/console/sign-in", "", "")
	return c
}

// scopesOf lists the scopes of an operation, any of which is sufficient.
func scopesOf(op operation) (scopes []string) {
	for _, one := range op.spec["security"].([]any) {
		for _, scope := range one.(map[string]any)["key"].([]any) {
			scopes = append(scopes, scope.(string))
		}
	}
	return scopes
}

// readsWithBody are the operations of viewers whose method is not GET: they only compute. Every other one must be refused.
var readsWithBody = []string{"explain-data", "lint-template", "preview-template", "match-event", "test-condition"}

// The cookie of a viewer opens reads, and each write of the document is refused and changes nothing.
func TestAViewerChangesNothing(t *testing.T) {
	t.Parallel()
	i := issuer.Start(t)
	s, _ := newsroom(t, sink.Config{}, "", issuerFile(t, i)...)
	s.http.must(201, "PUT", "/v1/subscribers/reader", plain, `{"addresses":[{"kind":"mail","address":"reader@example.org"}]}`)
	s.http.must(201, "PUT", "/v1/subscriptions/mine", plain, `{"topic":"story","channel":"email","to":"reader@example.org"}`)
	event := s.http.publish(`{"title":"a title"}`)
	s.http.completed(event)
	s.http.must(201, "PUT", "/v1/workers/pricing", plain, `{"title":"prices"}`)
	ids := ours(s, event)
	s.grant(i, "news", map[string]string{"readers": "viewer"})
	viewers := map[string]*caller{"of the service": s.signIn(i, "readers"), "of all services": s.signIn(i, "operators")}
	d := described(s)
	before, writes, reads := everythingOf(s, d, ids), 0, 0
	for _, op := range d.operations() {
		path, err := filled(op.path, ids)
		if err != nil || op.spec["security"] == nil || op.method == "GET" {
			continue // the other walk tells of a path that cannot be filled
		}
		mediaType, body := bodyOf(d, op)
		may := slices.Contains(scopesOf(op), "read")
		if may != slices.Contains(readsWithBody, op.id) {
			t.Errorf("%s: a viewer may use it: %v. Is it only a read? Then list it in readsWithBody", op.id, may)
		}
		for whose, viewer := range viewers {
			status, text, _ := viewer.send(op.method, path+"?service=news", mediaType, body)
			if !may && status != 403 || status >= 500 {
				t.Errorf("%s %s by a viewer %s: %d %s", op.method, path, whose, status, text)
			}
		}
		if may {
			reads++
		} else {
			writes++
		}
	}
	if writes < 40 || reads != len(readsWithBody) {
		t.Errorf("%d writes and %d reads were tried", writes, reads)
	}
	after := everythingOf(s, d, ids)
	for path, was := range before {
		if after[path] != was {
			t.Errorf("a viewer changed %s:\n%s\nis now\n%s", path, was, after[path])
		}
	}
	for whose, viewer := range viewers {
		viewer.must(200, "GET", "/v1/broadcasts?service=news", "", "")
		viewer.must(403, "GET", "/v1/keys?service=news", "", "")
		viewer.must(403, "GET", "/v1/backup", "", "")
		for path := range before {
			if status, text, _ := viewer.send("GET", path+"?service=news", "", ""); status >= 500 {
				t.Errorf("%s by a viewer %s: %d %s", path, whose, status, text)
			}
		}
	}
}

// A sign-in outlives a restart, has the roles that the configuration has now, and is named in the audit log.
func TestRolesOfPeopleFollowTheConfiguration(t *testing.T) {
	t.Parallel()
	i := issuer.Start(t)
	i.Change(func(state *issuer.State) { state.Down = true }) // the server starts without it
	s, _ := newsroom(t, sink.Config{}, "", issuerFile(t, i)...)
	i.Change(func(state *issuer.State) { state.Down = false })
	s.http.must(200, "POST", "/v1/apply?service=games", yaml, "service: games\n", "X-Fanfare-Service", "games")
	s.grant(i, "news", map[string]string{"editors": "admin"})
	s.grant(i, "games", map[string]string{"editors": "viewer"})
	person := s.signIn(i, "editors")
	if text := person.must(200, "GET", "/v1/services", "", ""); !strings.Contains(text, `"news"`) || !strings.Contains(text, `"games"`) {
		t.Errorf("the services are %s", text)
	}
	if text := person.must(422, "GET", "/v1/status", "", ""); !strings.Contains(text, "(games, news)") {
		t.Errorf("without a service: %s", text)
	}
	person.must(204, "POST", "/v1/pause?service=news", plain, `{"scope":{"kind":"service","name":"news"},"reason":"by a person"}`)
	person.must(403, "POST", "/v1/pause?service=games", plain, `{"scope":{"kind":"service","name":"games"}}`)
	if text := s.http.must(200, "GET", "/v1/audit?action=pause", "", ""); !strings.Contains(text, `"key_name":"Ada Example <ada@example.com> (`+i.URL+`)"`) {
		t.Errorf("the audit log has %s", text)
	}
	s.stop()
	s.start()
	person.url = s.url
	person.must(200, "GET", "/v1/keys?service=news", "", "")
	s.grant(i, "games", nil)
	s.grant(i, "news", map[string]string{"editors": "sender"})
	if text := person.must(200, "GET", "/v1/services", "", ""); strings.Contains(text, `"games"`) {
		t.Errorf("the services are %s", text)
	}
	person.must(403, "GET", "/v1/keys", "", "")
	person.must(202, "POST", "/v1/topics/story/events", plain, `{"title":"by a person"}`)
	s.grant(i, "news", map[string]string{"others": "viewer"})
	person.must(401, "GET", "/v1/services", "", "")
	if text := s.http.must(200, "GET", "/v1/sign-ins", "", ""); strings.Contains(text, "Ada") {
		t.Errorf("the sign-ins are %s", text)
	}
	if log := s.logged(); strings.Contains(log, "ada@example.com") || strings.Contains(log, issuer.ClientSecret) {
		t.Errorf("the log names the person, or has a secret:\n%s", log)
	}
}
