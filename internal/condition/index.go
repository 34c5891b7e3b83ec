package condition

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// Key identifies a topic.
type Key struct{ Service, Topic string }

// An Entry is a subscription with its condition.
type Entry struct {
	Place      fanfare.RowID // id of the subscription, unique across topics
	Subscriber fanfare.RowID
	Channel    uint16          // number that the caller gave to the channel
	Slot       uint16          // number that the caller gave to the time when it is due; 0: immediately
	Filter     string          // CEL over the event; "" with Rule "": every event of the topic
	Rule       string          // or the name of a rule of the topic
	Params     json.RawMessage // and its params, an object
}

// A Hit is a subscription that matches an event.
type Hit = fanfare.Hit

// An Event is the input of conditions, and Attributes are its context attributes.
type (
	Event      = expr.Event
	Attributes = expr.Attributes
)

// EventOf returns e for conditions, without a previous event.
func EventOf(e *fanfare.Event) Event {
	return Event{Data: e.Data, Attributes: Attributes{
		ID: e.ID, Source: e.Source, Type: e.Type, Subject: e.Subject, Time: e.Time, Extensions: e.Extensions,
	}}
}

// An Index holds the conditions of all topics. Its methods are safe for concurrent use. A match
// sees each change to a subscription as a whole or not at all.
type Index struct {
	language *cel.Env
	columns  subscriptionColumns

	mu     sync.RWMutex
	topics map[Key]*topic
}

// New returns an empty index.
func New() *Index {
	language, err := lang.NewLanguage()
	if err != nil {
		panic("condition: the language does not compile: " + err.Error()) // independent of any input
	}
	return &Index{language: language, topics: map[Key]*topic{}}
}

// Check compiles a definition and stores nothing. The error points at /schema, /rules/0/name,
// /rules/0/when or /rules/0/params/x.
func (x *Index) Check(def Definition) error {
	_, err := compileDefinition(x.language, def)
	return err
}

// Define sets the definition of a topic; an equal definition changes nothing. Subscriptions stay,
// and rules are matched by name. It is a Conflict to remove a rule that has subscriptions, to
// change its params, or to remove a field from the schema that an active filter uses.
func (x *Index) Define(key Key, def Definition) error {
	c, err := compileDefinition(x.language, def)
	if err != nil {
		return err
	}
	x.mu.Lock()
	t := x.topics[key]
	if t == nil {
		// The new topic is not visible yet, so define it first.
		t = newTopic(&x.columns)
		err = t.define(c)
		x.topics[key] = t
		x.mu.Unlock()
		return err
	}
	x.mu.Unlock()
	return t.define(c)
}

// CheckDefine returns the error that Define would return, and changes nothing. Any definition is
// allowed for an unknown topic.
func (x *Index) CheckDefine(key Key, def Definition) error {
	c, err := compileDefinition(x.language, def)
	if err != nil {
		return err
	}
	if t, err := x.topic(key); err == nil {
		return t.checkDefine(c)
	}
	return nil
}

// topic returns the topic of key, or NotFound.
func (x *Index) topic(key Key) (*topic, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if t := x.topics[key]; t != nil {
		return t, nil
	}
	return nil, unknownTopic(key)
}

// CheckFilter compiles a filter: it must be CEL, use only fields in the schema, and be true or
// false. The error has pointer /filter, line and column.
func (x *Index) CheckFilter(key Key, filter string) error {
	t, err := x.topic(key)
	if err != nil {
		return err
	}
	return t.checkFilter(filter)
}

// CheckParams checks the params of a rule: exactly those that it declares, with the right types.
// The error points at /rule or /params/x, and its details are further mistakes.
func (x *Index) CheckParams(key Key, rule string, params json.RawMessage) error {
	t, err := x.topic(key)
	if err != nil {
		return err
	}
	return t.checkParams(rule, params)
}

// Add adds all subscriptions or none; a concurrent match may see only some of many. A subscription
// with an id that the topic has already replaces the old one, and a match sees one of the two.
func (x *Index) Add(key Key, entries []Entry) error {
	t, err := x.topic(key)
	if err != nil {
		return err
	}
	return t.add(entries)
}

// Remove removes a subscription if it exists.
func (x *Index) Remove(key Key, place fanfare.RowID) {
	if t, err := x.topic(key); err == nil {
		t.remove(place)
	}
}

// Match appends to hits all subscriptions of the topic that match the event, ordered by id, and
// returns the extended slice. It fails for an unknown topic and for data that is not JSON, never
// because of a condition.
func (x *Index) Match(key Key, event Event, hits []Hit) ([]Hit, error) {
	t, err := x.topic(key)
	if err != nil {
		return hits, err
	}
	return t.match(&event, hits)
}

// Places calls visit with the ids of all subscriptions of the topic that match the event, each
// once, in runs without an order. It takes a small part of the time of Match, which looks up and
// orders each subscription. visit must not keep or change a run, or change the index. Places fails
// like Match.
func (x *Index) Places(key Key, event Event, visit func(places []uint32)) error {
	t, err := x.topic(key)
	if err != nil {
		return err
	}
	return t.eachPlace(&event, visit)
}

// Len returns the number of subscriptions of a topic.
func (x *Index) Len(key Key) int {
	t, err := x.topic(key)
	if err != nil {
		return 0
	}
	return t.size()
}

// KeyOf returns the key of an event: the text of the topic's key field. The event has no key if the
// topic has no key field, or if the field is missing, null, empty, a list, an object, longer than
// MaxKeyBytes, or contains a zero byte. A number and its text are the same key, and so are 5 and
// 5.0.
func (x *Index) KeyOf(key Key, data json.RawMessage) (text string, ok bool, err error) {
	t, err := x.topic(key)
	if err != nil {
		return "", false, err
	}
	c := t.compiled.Load()
	if c.key == nil {
		return "", false, nil
	}
	var d expr.Document
	first := map[string]*expr.PathUse{c.key.Steps[0]: {Index: c.key.Member}}
	if err := d.Scan(data, c.filterScope.Event, first, 1); err != nil {
		return "", false, err
	}
	v, _ := d.Follow(c.key)
	text, ok = keyTextOf(v)
	return text, ok, nil
}

// KeyAt returns what KeyOf returns for a topic with this key and without a schema.
func KeyAt(field string, data json.RawMessage) (text string, ok bool) {
	v, err := expr.DecodeData(data, nil)
	steps := lang.KeySteps(field)
	if err != nil || steps == nil {
		return "", false
	}
	v, _ = expr.FollowSteps(steps, v)
	return keyTextOf(v)
}

// keyTextOf returns the text of a value as a key.
func keyTextOf(v any) (text string, ok bool) {
	switch v := v.(type) {
	case string:
		text = v
	case bool:
		text = strconv.FormatBool(v)
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v+0, 'f', -1, 64) // -0 is 0
	default:
		return "", false
	}
	return text, text != "" && len(text) <= lang.MaxKeyBytes && strings.IndexByte(text, 0) < 0
}

func unknownTopic(key Key) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("service %q has no topic %q", key.Service, key.Topic)}
}
