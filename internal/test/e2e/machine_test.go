package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// The admin of one service cannot have the server tell its own key to a relay of
// theirs, by whatever way a channel is set.
func TestTheKeyOfAServiceDoesNotReachTheServersFiles(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	editor := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news")))
	spy := `{"driver":"smtp","relay":"` + r.addr + `","from":"a@example.org","username":"u","password_file":"` + s.path("admin.key") + `"}`
	if p := editor.refused(403, "PUT", "/v1/channels/spy", plain, spy); p.Pointer != "/password_file" {
		t.Errorf("%+v", p)
	}
	if p := editor.refused(403, "POST", "/v1/apply", yaml, "service: news\nchannels:\n  spy: "+spy+"\n"); p.Pointer != "/channels/spy/password_file" {
		t.Errorf("%+v", p)
	}
	if p := editor.refused(403, "POST", "/v1/apply?dry_run=true", yaml, "service: news\nchannels:\n  spy: {driver: file, path: "+s.dir+", from: a@example.org}\n"); p.Pointer != "/channels/spy/path" {
		t.Errorf("%+v", p)
	}
	editor.must(404, "GET", "/v1/channels/spy", "", "")
	s.http.must(201, "PUT", "/v1/channels/spy", plain, spy) // the operator may
}
