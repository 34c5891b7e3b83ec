package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Ids of events that never were, also such as the bus cannot have, are not found.
func TestEventThatNeverWasIsNotFound(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	event := s.http.publish(`{"title":"there"}`)
	s.http.must(200, "GET", "/v1/events/"+event, "", "")
	_, number, _ := strings.Cut(strings.TrimPrefix(event, "evt-"), "-")
	for _, id := range []string{"evt-20200101-1", "evt-20200101-0", "evt-20200101-" + number, event + "1", "evt-99991231-1000"} {
		if p := s.http.refused(404, "GET", "/v1/events/"+id, "", ""); p.Code != "not_found" {
			t.Errorf("%s: %+v", id, p)
		}
	}
}
