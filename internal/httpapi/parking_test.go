package httpapi

import (
	"context"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

// sharing is a world with parked work of one service, and of several services.
type sharing struct{ *world }

func (sharing) Parked(context.Context) ([]fanfare.Parked, error) {
	event := newsEvent.String()
	return []fanfare.Parked{{ID: "own", Kind: "event", Event: event}, {ID: "shared", Kind: "event", Event: event, Shared: true}}, nil
}

func (sharing) DropParked(context.Context, string) error { return nil }

// Events that were accepted together are parked together. The admin of one service
// cannot drop the events of another one with them.
func TestParkedWorkOfSeveralServicesIsTheOperators(t *testing.T) {
	w := newWorld()
	a := w.api(func(p *Dependencies) { p.Parking = sharing{w} })
	if got := ask(t, a, "GET", "/v1/parked", "", "Authorization", "Bearer "+newsSecret); !strings.Contains(got.Body.String(), `"own"`) || strings.Contains(got.Body.String(), "shared") {
		t.Errorf("listed: %s", got.Body)
	}
	for _, test := range []struct {
		id, key string
		status  int
	}{{"own", newsSecret, 204}, {"shared", newsSecret, 404}, {"shared", adminSecret, 204}} {
		if got := ask(t, a, "DELETE", "/v1/parked/"+test.id, "", "Authorization", "Bearer "+test.key); got.Code != test.status {
			t.Errorf("%s: %d %s", test.id, got.Code, got.Body)
		}
	}
}
