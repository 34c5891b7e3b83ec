package control

import (
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
)

func TestGroupOfSeveralServicesIsRecognized(t *testing.T) {
	group := func(services ...string) []byte {
		var events []*fanfare.AcceptedEvent
		for _, s := range services {
			events = append(events, &fanfare.AcceptedEvent{Service: s, Topic: "t", Event: fanfare.Event{ID: s}})
		}
		text, err := eventgroup.Encode(events...)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for want, groups := range map[bool][][]byte{
		true:  {group("a", "b"), group("a", "a", "b"), []byte("damaged"), nil},
		false: {group("a"), group("b", "b")},
	} {
		for i, g := range groups {
			if ofSeveralServices(g) != want {
				t.Errorf("group %d: not %v", i, want)
			}
		}
	}
}
