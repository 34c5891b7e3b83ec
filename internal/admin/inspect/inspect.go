// Package inspect answers questions of operators about matching and digests: the cost of conditions, the recipients of an event, the reason
// why a subscription matches or not, the states of keys, the checks of matches, and the events that wait for digests. The API calls it, and
// package report uses it to explain deliveries.
//
// It stores nothing. It reads the current state of the index, the registry and the store.
package inspect

import (
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/match"
	"fanfare.dev/fanfare/internal/pipeline/match/topicstate"
	"fanfare.dev/fanfare/internal/pipeline/match/verify"
)

// Options are the components that an Inspector reads.
type Options struct {
	Index     *condition.Index
	Verifier  *verify.Verifier
	Registry  *registry.Registry
	States    *topicstate.States
	Samples   *match.Samples
	Audiences *match.Audiences
	Clock     clock.Clock
}

// An Inspector answers questions about matching. It is safe for concurrent use.
type Inspector struct {
	opt     Options
	dryRuns ctxlock.Lock // one at a time: a dry run may find millions of subscriptions
	lookups ctxlock.Lock // one at a time: lookups of a subscription in the index
}

// New returns an Inspector.
func New(o Options) *Inspector {
	return &Inspector{opt: o, dryRuns: ctxlock.New(), lookups: ctxlock.New()}
}

func (in *Inspector) topic(service, name string) (*catalog.Topic, error) {
	t, ok := in.opt.Registry.Topic(service, name)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.NotFound, Message: "the service has no topic " + name}
	}
	return t, nil
}

// Before returns the data of the last event with the same key as the given data, or nil if there is no such event.
func (in *Inspector) Before(service, topic string, data json.RawMessage) (json.RawMessage, error) {
	t, ok := in.opt.Registry.Topic(service, topic)
	if !ok {
		return nil, nil
	}
	key, ok, err := match.KeyOf(in.opt.Index, t, data)
	if err != nil || !ok {
		return nil, err
	}
	last, _ := in.opt.States.Get(key)
	return last.Data, nil
}

// States lists the states of a topic in the order of their keys.
func (in *Inspector) States(service, topic, behind string, limit int) (wire.StatePage, error) {
	t, err := in.topic(service, topic)
	if err != nil {
		return wire.StatePage{}, err
	}
	size := in.opt.States.Size(t.Number, t.Series)
	page := wire.StatePage{Keys: size.Keys, Full: size.Full, States: []wire.KeyState{}}
	for _, l := range in.opt.States.List(t.Number, t.Series, behind, limit) {
		page.States = append(page.States, keyState(&l))
	}
	return page, nil
}

// State returns the state of one key.
func (in *Inspector) State(service, topic, key string) (wire.KeyState, error) {
	t, err := in.topic(service, topic)
	if err != nil {
		return wire.KeyState{}, err
	}
	l, ok := in.opt.States.Get(fanfare.KeyRef{Topic: t.Number, Series: t.Series, Key: key})
	if !ok {
		e := &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no event has the key %q", key), Hint: "publish an event with this key; the data of the last event for a key is its state"}
		if t.Key == "" {
			e.Message, e.Hint = "the topic "+topic+" has no key", "set the topic's key to a field of the data that identifies the subject of an event, such as symbol"
		}
		return wire.KeyState{}, e
	}
	return keyState(&l), nil
}

func keyState(l *fanfare.Last) wire.KeyState {
	return wire.KeyState{Key: l.Of.Key, Event: l.Event.String(), At: l.At, Data: l.Data}
}
