package ingest

import (
	"testing"

	"fanfare.dev/fanfare"
)

func TestAnAudienceThatIsNoneIsRefused(t *testing.T) {
	c := Start(Options{Log: &memoryLog{}, Topics: fixed{}, Clock: newClock(), Floor: noFloor})
	defer c.Stop()
	posted := func(id, filter string) fanfare.AcceptedEvent {
		return fanfare.AcceptedEvent{Service: "news", Topic: "story", Event: fanfare.Event{ID: id, Source: "/"}, Audience: &fanfare.AudienceFilter{Filter: filter}}
	}
	results, err := c.Post(t.Context(), []fanfare.AcceptedEvent{posted("1", "wrong"), posted("2", "true")})
	if err != nil || fanfare.CodeOf(results[0].Err) != fanfare.Invalid || results[1].Err != nil {
		t.Errorf("got %+v, %v", results, err)
	}
}
