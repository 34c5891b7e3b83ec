package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// States has the last event of each key of a topic.
type States interface {
	// States lists those behind a key, limit at most. Keys is how many there are.
	// NotFound: the service has no such topic.
	States(service, topic, behind string, limit int) (wire.StatePage, error)
	// State is that of one key, NotFound where it has none.
	State(service, topic, key string) (wire.KeyState, error)
}

// maxStateBytes is after how many bytes of data a page of states ends.
const maxStateBytes = 4 << 20

// pageOfStates is how many of a list make a page.
func pageOfStates(list []wire.KeyState, limit int) int {
	bytes := 0
	for i := range list {
		if i == limit || bytes >= maxStateBytes {
			return i
		}
		bytes += len(list[i].Data)
	}
	return len(list)
}

func (a *API) stateRoutes() {
	list := listOp("list-states", "/v1/topics/{topic}/state", "events", "The last event of each key of a topic, by key")
	list.Description = "The functions crosses, crosses_above and crosses_below compare the next event of the key with it. A topic has keys if its setting key names a field."
	read(a, list, mayLookUp, func(_ context.Context, c caller, in *OfTopic) (page wire.StatePage, err error) {
		service, err := a.oneService(c)
		if err != nil {
			return page, err
		}
		l := listingOf("states", service, in.Topic)
		behind, err := l.key(in.Cursor)
		if err != nil {
			return page, err
		}
		page, err = a.deps.States.States(service, in.Topic, behind, in.Limit+1)
		if n := pageOfStates(page.States, in.Limit); n < len(page.States) {
			page.States = page.States[:n]
			page.Next = l.cursor(page.States[n-1].Key)
		}
		return page, err
	})
	type ofKey struct {
		Named
		Topic string `path:"topic" doc:"name of the topic"`
		Key   string `path:"key" doc:"text of the key, such as the symbol of a stock"`
	}
	read(a, listOp("get-state", "/v1/topics/{topic}/state/{key}", "events", "The last event of a key"), mayLookUp,
		func(_ context.Context, c caller, in *ofKey) (wire.KeyState, error) {
			service, err := a.oneService(c)
			if err != nil {
				return wire.KeyState{}, err
			}
			return a.deps.States.State(service, in.Topic, in.Key)
		})
}
