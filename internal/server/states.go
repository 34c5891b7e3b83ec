package server

import (
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/registry"
)

// known are the states of keys as people ask for them, by the names of topics.
type known struct {
	index    *condition.Index
	registry *registry.Registry
	states   *topicstate.States
}

// Before returns the data of the event that one with these data would come after;
// none where there is no such event.
func (k known) Before(service, topic string, data json.RawMessage) (json.RawMessage, error) {
	t, ok := k.registry.Topic(service, topic)
	if !ok {
		return nil, nil
	}
	key, ok, err := keyOf(k.index, t, data)
	if err != nil || !ok {
		return nil, err
	}
	before, _ := k.states.Get(key)
	return before.Data, nil
}

// States lists the states of a topic.
func (k known) States(service, topic, behind string, limit int) (wire.StatePage, error) {
	t, err := k.topic(service, topic)
	if err != nil {
		return wire.StatePage{}, err
	}
	size := k.states.Size(t.Number, t.Series)
	page := wire.StatePage{Keys: size.Keys, Full: size.Full, States: []wire.KeyState{}}
	for _, l := range k.states.List(t.Number, t.Series, behind, limit) {
		page.States = append(page.States, shownState(&l))
	}
	return page, nil
}

// State is the state of one key.
func (k known) State(service, topic, key string) (wire.KeyState, error) {
	t, err := k.topic(service, topic)
	if err != nil {
		return wire.KeyState{}, err
	}
	l, ok := k.states.Get(fanfare.KeyRef{Topic: t.Number, Series: t.Series, Key: key})
	if !ok {
		e := &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no event of the key %q is known", key), Hint: "the last event of a key is its state, from the first one on"}
		if t.Key == "" {
			e.Message, e.Hint = "the topic "+topic+" has no key", "set key to the field of the data that tells whose event it is, such as symbol"
		}
		return wire.KeyState{}, e
	}
	return shownState(&l), nil
}

func (k known) topic(service, name string) (*catalog.Topic, error) {
	t, ok := k.registry.Topic(service, name)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + name}
	}
	return t, nil
}

func shownState(l *fanfare.Last) wire.KeyState {
	return wire.KeyState{Key: l.Of.Key, Event: l.Event.String(), At: l.At, Data: l.Data}
}
