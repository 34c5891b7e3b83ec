package e2e

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// An erased person is removed from sent and waiting digests, and others get their digests.
func TestErasedPersonIsInNoDigest(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, digests)
	for _, who := range []string{"Xqadazw", "bob"} {
		for cadence, id := range map[string]string{"window 2s": "soon", faraway(): "late"} {
			s.http.subscribe(fmt.Sprintf(`{"id":"%s-%s","topic":"story","channel":"email","to":"%s@example.org","subscriber":"id-%s","cadence":%q}`, who, id, who, who, cadence))
		}
	}
	event := s.http.publish(`{"title":"first"}`)
	r.one("Xqadazw@example.org")
	r.one("bob@example.org")
	var digest string
	eventually(t, "the event is in a digest", func() bool {
		digest = s.http.broadcast(event).Gathered[0].Digest
		return digest != ""
	})
	s.http.completed(digest)
	s.mustRun("", "subscriber", "erase", "id-Xqadazw", "--yes")
	if found := s.foundIn("Xqadazw"); len(found) > 0 {
		t.Errorf("who was erased is in %v", found)
	}
	if b := s.http.completed(digest); b.Counts.Total() != 2 {
		t.Errorf("the digest counts %v", b.Counts)
	}
	second := s.http.publish(`{"title":"second"}`)
	eventually(t, "bob is told of the second", func() bool { return len(r.of("bob@example.org")) == 2 })
	if mails := r.of("Xqadazw@example.org"); len(mails) != 1 {
		t.Errorf("who was erased got %d mails", len(mails))
	}
	if g := s.http.broadcast(second).Gathered; len(g) != 2 || g[0].Recipients != 1 || g[1].Recipients != 1 {
		t.Errorf("the second event is gathered for %+v", g)
	}
}
