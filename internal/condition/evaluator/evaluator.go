package evaluator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Result is what a condition says of an event.
type Result uint8

const (
	False     Result = iota
	True             // the event is for the subscription
	Error            // an operation failed: no match
	Undecided        // there is no single right answer; see Verdict
)

func (r Result) String() string {
	return [...]string{False: "false", True: "true", Error: "error", Undecided: "undecided"}[r]
}

// Verdict is a result and its reason. An Error says what failed, such as "no
// such field gone". Undecided means that the language leaves the answer open:
// the evaluation takes so many steps that an engine may refuse it, it depends on
// the order of the keys of a map, or it makes a map with keys that CEL does not
// have.
type Verdict struct {
	Result Result
	Reason string
}

// Topic is what a topic says of its events: its JSON Schema decides which
// fields may be written bare and of what kind a number is. A Topic may be used
// by several goroutines.
type Topic struct {
	shape    *shape
	patterns cache[*regexp.Regexp]
	zones    cache[*time.Location]
}

// NewTopic reads the JSON Schema of a topic. Without a schema nothing is known of
// its events.
func NewTopic(schema []byte) (*Topic, error) {
	if len(schema) == 0 {
		return &Topic{}, nil
	}
	s, err := readSchema(schema)
	if err != nil {
		return nil, err
	}
	return &Topic{shape: s}, nil
}

// bare reports whether a name may stand for a field of the event.
func (t *Topic) bare(name string) bool {
	if t.shape == nil || slices.Contains(ownWords, name) || slices.Contains(reserved, name) {
		return false
	}
	_, known := t.shape.fields[name]
	return known
}

// Condition is a filter, or a rule with params. It may be used by several
// goroutines.
type Condition struct {
	topic  *Topic
	root   *node
	params map[string]string
}

// Condition parses a text. params is nil for a filter; for a rule it maps the
// name of each param to its type, number, string, boolean or strings. The empty
// text is met by every event. A text that is no CEL, and a name or a function
// that does not exist, are refused; types are not checked.
func (t *Topic) Condition(text string, params map[string]string) (*Condition, error) {
	if err := checkParams(params); err != nil {
		return nil, err
	}
	root, err := t.condition(text, params)
	if err != nil {
		return nil, err
	}
	root.describe()
	root.label()
	root.climb()
	return &Condition{t, root, params}, nil
}

// Params are the params of one subscription to a rule.
type Params struct {
	values value
	extent extent
}

// Params decodes the params of a subscription, a JSON object with exactly the
// names that the rule has. Numbers are doubles.
func (c *Condition) Params(raw []byte) (*Params, error) {
	object, err := decodeJSON(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("the params are no JSON: %w", err)
	}
	if object.kind != kindMap {
		return nil, errors.New("the params are no object")
	}
	given := object.ref
	for i, key := range given.keys {
		kind, known := c.params[key.str]
		if !known {
			return nil, fmt.Errorf("the rule has no param %q", key.str)
		}
		v, ok := paramValue(given.items[i], kind)
		if !ok {
			return nil, fmt.Errorf("param %q is no %s", key.str, kind)
		}
		given.items[i] = v
	}
	for name := range c.params {
		if given.findText(name) < 0 {
			return nil, fmt.Errorf("param %q is missing", name)
		}
	}
	return &Params{object, extentOf(object)}, nil
}

// paramValue checks the type of a param, and makes a double of a number.
func paramValue(v value, kind string) (value, bool) {
	switch kind {
	case "number":
		return doubleValue(v.asDouble() + 0), v.isNumber() // + 0 makes 0 of -0
	case "string":
		return v, v.kind == kindString
	case "boolean":
		return v, v.kind == kindBool
	default:
		return v, v.kind == kindList &&
			!slices.ContainsFunc(v.ref.items, func(item value) bool { return item.kind != kindString })
	}
}

// Event is an event as it was published, and the data of the last event of the
// same key; Was is empty where there is none. Empty data are null.
type Event struct {
	Data, Was  []byte
	Attributes Attributes
}

// Attributes are those of CloudEvents. An empty text and the zero time are
// missing. Extensions are JSON strings, numbers and booleans by their names,
// which cannot hide the other attributes.
type Attributes struct {
	ID, Source, Type, Subject string
	Time                      time.Time
	Extensions                map[string][]byte
}

// Input is an event in decoded form. Any number of conditions can be asked of
// it; nothing is changed by that.
type Input struct {
	event      value
	was        value
	hasWas     bool
	attributes value
	extent     extent
}

// Event decodes an event.
func (t *Topic) Event(e Event) (*Input, error) {
	in := &Input{event: nullValue}
	var err error
	if len(e.Data) > 0 {
		if in.event, err = decodeJSON(e.Data, t.shape); err != nil {
			return nil, fmt.Errorf("the data are no JSON: %w", err)
		}
	}
	if len(e.Was) > 0 {
		in.hasWas = true
		if in.was, err = decodeJSON(e.Was, t.shape); err != nil {
			return nil, fmt.Errorf("the data of the last event are no JSON: %w", err)
		}
	}
	if in.attributes, err = e.Attributes.value(); err != nil {
		return nil, err
	}
	in.extent = extentOf(in.event).max(extentOf(in.was)).max(extentOf(in.attributes))
	return in, nil
}

// value makes the map that ce is.
func (a Attributes) value() (value, error) {
	object := &composite{}
	set := func(name string, v value) {
		if object.findText(name) < 0 {
			object.keys, object.items = append(object.keys, stringValue(name)), append(object.items, v)
			object.indexKey(len(object.keys) - 1)
		}
	}
	own := [...]struct{ name, text string }{{"id", a.ID}, {"source", a.Source}, {"type", a.Type}, {"subject", a.Subject}}
	for _, attribute := range own {
		if attribute.text != "" {
			set(attribute.name, stringValue(attribute.text))
		}
	}
	if !a.Time.IsZero() {
		set("time", timeValue(a.Time))
	}
	for name, raw := range a.Extensions {
		if slices.Contains([]string{"id", "source", "type", "subject", "time"}, name) {
			continue
		}
		v, err := decodeJSON(raw, nil)
		if err != nil {
			return value{}, fmt.Errorf("extension %s is no JSON: %w", name, err)
		}
		if v.kind != kindString && v.kind != kindBool && !v.isNumber() {
			return value{}, fmt.Errorf("extension %s is no string, number or boolean", name)
		}
		set(name, v)
	}
	return value{kind: kindMap, ref: object}, nil
}

// Evaluate decides the condition for an event. p is nil for a filter.
func (c *Condition) Evaluate(in *Input, p *Params) Verdict {
	if p == nil && c.params != nil {
		return Verdict{Error, "the rule has no params here"}
	}
	e := evaluation{in: in}
	given := in.extent
	if p != nil {
		e.params = p.values
		given = given.max(p.extent)
	}
	if c.root.rung == 0 || !given.within(rungs[c.root.rung-1]) {
		b := bounder{given: given}
		steps, _ := b.bound(c.root)
		e.counting = steps > maxSteps
	}
	v := predicate(e.eval(c.root))
	if e.steps > maxSteps {
		return Verdict{Undecided, tooManySteps}
	}
	switch v.kind {
	case kindBool:
		if v.isTrue() {
			return Verdict{Result: True}
		}
		return Verdict{Result: False}
	case kindUndecided:
		return Verdict{Undecided, v.str}
	default:
		return Verdict{Error, v.str}
	}
}

// cacheEntries is how many results a cache keeps; it is emptied when it is full.
const cacheEntries = 1024

// A cache keeps what was made of a text, an error too.
type cache[T any] struct {
	mu   sync.Mutex
	made map[string]cached[T]
}

type cached[T any] struct {
	result T
	err    error
}

// get returns what was made of a text, or makes it.
func (c *cache[T]) get(text string, build func(string) (T, error)) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hit, ok := c.made[text]; ok {
		return hit.result, hit.err
	}
	if c.made == nil || len(c.made) >= cacheEntries {
		c.made = make(map[string]cached[T])
	}
	result, err := build(text)
	c.made[text] = cached[T]{result, err}
	return result, err
}
