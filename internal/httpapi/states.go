package httpapi

import (
	"context"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// States reads the last event of each key of a topic.
type States interface {
	// States lists at most limit states after a key. Keys is the number of all states.
	// It returns NotFound if the service does not have the topic.
	States(service, topic, behind string, limit int) (wire.StatePage, error)
	// State returns the state of one key, or NotFound if it has none.
	State(service, topic, key string) (wire.KeyState, error)
}

// maxStateBytes is the number of bytes of data after which a page of states ends.
const maxStateBytes = 4 << 20

// pageOfStates returns how many states of a list fit on a page.
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
	list := listOp("list-states", "/v1/topics/{topic}/state", "events", "List the last event of each key of a topic, by key")
	list.Description = "The functions crosses, crosses_above and crosses_below compare the next event of the key with it. A topic has keys if it has the setting key."
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
		Key   string `path:"key" doc:"value of the key, such as the symbol of a stock"`
	}
	read(a, listOp("get-state", "/v1/topics/{topic}/state/{key}", "events", "Get the last event of a key"), mayLookUp,
		func(_ context.Context, c caller, in *ofKey) (wire.KeyState, error) {
			service, err := a.oneService(c)
			if err != nil {
				return wire.KeyState{}, err
			}
			return a.deps.States.State(service, in.Topic, in.Key)
		})
}
