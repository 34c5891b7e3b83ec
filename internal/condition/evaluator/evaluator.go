package evaluator

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// Result is the result of a condition for an event.
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

// Verdict is a result and its reason. An Error has the failure as its reason, such as "no such
// field gone". Undecided means that the language leaves the answer open: the evaluation takes so
// many steps that an engine may refuse it, it depends on the order of the keys of a map, or it
// makes a map with keys that CEL does not allow.
type Verdict struct {
	Result Result
	Reason string
}

// Topic holds the JSON Schema of a topic, which determines the fields that a condition may use
// without "event." and the kinds of numbers. Several goroutines may use a Topic.
type Topic struct {
	shape    *shape
	patterns cache[*regexp.Regexp]
	zones    cache[*time.Location]
}

// NewTopic reads the JSON Schema of a topic. Without a schema, no field has a known kind.
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

// bare reports whether a name without "event." is a field of the event.
func (t *Topic) bare(name string) bool {
	if t.shape == nil || slices.Contains(ownWords, name) || slices.Contains(reserved, name) {
		return false
	}
	_, known := t.shape.fields[name]
	return known
}

// Condition is a filter, or a rule with params. Several goroutines may use it.
type Condition struct {
	topic  *Topic
	root   *node
	params map[string]string
}

// Condition parses a text. params is nil for a filter; for a rule it maps the name of each param
// to its type: number, string, boolean or strings. The empty text is true for every event.
// Condition refuses invalid CEL and unknown names and functions; it does not check types.
func (t *Topic) Condition(text string, params map[string]string) (*Condition, error) {
	if err := checkParams(params); err != nil {
		return nil, err
	}
	root, err := t.condition(text, params)
	if err != nil {
		return nil, err
	}
	root.collectParams()
	root.setText()
	root.setSizeClasses()
	return &Condition{t, root, params}, nil
}

// Params are the params of one subscription to a rule.
type Params struct {
	values value
	extent extent
}

// Params decodes the params of a subscription: a JSON object with exactly the names that the rule
// declares. Numbers are doubles.
func (c *Condition) Params(raw []byte) (*Params, error) {
	object, err := decodeJSON(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("the params are not valid JSON: %w", err)
	}
	if object.kind != kindMap {
		return nil, errors.New("the params are not an object")
	}
	given := object.ref
	for i, key := range given.keys {
		kind, known := c.params[key.str]
		if !known {
			return nil, fmt.Errorf("the rule has no param %q", key.str)
		}
		v, ok := paramValue(given.items[i], kind)
		if !ok {
			return nil, fmt.Errorf("param %q is not a %s", key.str, kind)
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

// paramValue checks the type of a param, and converts a number to a double.
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

// Event is a published event and the data of the previous event with the same key; Was is empty if
// there is none. Empty data is null.
type Event struct {
	Data, Was  []byte
	Attributes Attributes
}

// Attributes are those of CloudEvents. An empty text and the zero time are missing attributes.
// Extensions are JSON strings, numbers and booleans by name; they cannot replace the other
// attributes.
type Attributes struct {
	ID, Source, Type, Subject string
	Time                      time.Time
	Extensions                map[string][]byte
}

// Input is a decoded event. It is read only, so any number of conditions can be evaluated for it.
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
			return nil, fmt.Errorf("the data is not valid JSON: %w", err)
		}
	}
	if len(e.Was) > 0 {
		in.hasWas = true
		if in.was, err = decodeJSON(e.Was, t.shape); err != nil {
			return nil, fmt.Errorf("the data of the previous event is not valid JSON: %w", err)
		}
	}
	if in.attributes, err = e.Attributes.value(); err != nil {
		return nil, err
	}
	in.extent = extentOf(in.event).max(extentOf(in.was)).max(extentOf(in.attributes))
	return in, nil
}

// value returns the map ce.
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
			return value{}, fmt.Errorf("extension %s is not valid JSON: %w", name, err)
		}
		if v.kind != kindString && v.kind != kindBool && !v.isNumber() {
			return value{}, fmt.Errorf("extension %s is not a string, number or boolean", name)
		}
		set(name, v)
	}
	return value{kind: kindMap, ref: object}, nil
}

// Evaluate decides the condition for an event. p is nil for a filter.
func (c *Condition) Evaluate(in *Input, p *Params) Verdict {
	if p == nil && c.params != nil {
		return Verdict{Error, "the params of the rule are missing"}
	}
	e := evaluation{in: in}
	given := in.extent
	if p != nil {
		e.params = p.values
		given = given.max(p.extent)
	}
	if c.root.sizeClass == 0 || !given.within(sizeClasses[c.root.sizeClass-1]) {
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

// cacheEntries limits the results in a cache, which is emptied when it is full.
const cacheEntries = 1024

// A cache stores the results of a function of a text, including errors.
type cache[T any] struct {
	mu   sync.Mutex
	made map[string]cached[T]
}

type cached[T any] struct {
	result T
	err    error
}

// get returns the result for a text; it calls make if it is not cached.
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
