package condition

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare"
)

// An Audience is a sender's condition over the people whom an event would reach, in
// the language of conditions: subscriber has id, locale, time_zone and attributes, sub
// the params of the subscription. What is not known of somebody is missing, and an
// error is no member. It is safe for concurrent use.
type Audience struct {
	scope     *scope
	condition Predicate
	paths     pathTable
	params    bool
	frames    sync.Pool // of *frame
}

// maxAudienceNanos is what a condition may take of one person, as the cost of others is
// estimated: a sender's event may reach millions, and those behind it wait.
const maxAudienceNanos = 20_000

// A Person is what an audience is asked about.
type Person struct {
	ID, Locale, TimeZone string // "" is unknown
	Attributes           []byte // JSON object, or empty
	Params               []byte // of the subscription: JSON object, or empty
}

// NewAudience compiles a condition. attributes is the JSON Schema of subscribers'
// attributes; empty: any may be named. The error has pointer /audience_filter, line
// and column.
func NewAudience(text string, attributes json.RawMessage) (*Audience, error) {
	known, err := parseSchema(attributes)
	if err != nil {
		return nil, err
	}
	env, err := cel.NewEnv(append(languageOptions(), cel.Variable("subscriber", cel.DynType), cel.Variable("sub", cel.DynType))...)
	if err != nil {
		return nil, err
	}
	name := &schemaType{kind: kindString}
	sc := &scope{env: env, noEvent: true, event: &schemaType{kind: kindMap, fields: map[string]*schemaType{
		"sub":        {kind: kindMap, open: true},
		"subscriber": {kind: kindMap, fields: map[string]*schemaType{"id": name, "locale": name, "time_zone": name, "attributes": known}},
	}}}
	a, err := sc.compile("/audience_filter", text)
	if e, ok := errors.AsType[*fanfare.Error](err); ok && strings.HasPrefix(e.Message, "unknown name") {
		e.Hint = "an audience filter sees subscriber.id, subscriber.locale, subscriber.time_zone, subscriber.attributes and sub, the params of the subscription"
	}
	if err != nil {
		return nil, err
	}
	b := builder{scope: sc, ast: a}
	of := &Audience{scope: sc, condition: b.build(a.Expr()), params: usesVariable(a.Expr(), "sub")}
	if b.err != nil {
		return nil, invalid("/audience_filter", "%v", b.err)
	}
	if nanos := nanosOf(of.condition); nanos > maxAudienceNanos {
		e := invalid("/audience_filter", "the condition would take about %d ns of every person whom the event would reach, at most %d ns are for it", nanos, maxAudienceNanos)
		e.Hint = "do without a loop in a loop; a list is asked for what it has by 'de' in subscriber.attributes.languages"
		return nil, e
	}
	of.paths.link(b.paths)
	texts := newTextTable()
	of.frames.New = func() any { return &frame{texts: texts} }
	return of, nil
}

// usesVariable reports whether e names a variable.
func usesVariable(e celast.Expr, variable string) bool {
	return isVariable(e, variable) || slices.ContainsFunc(children(e), func(part celast.Expr) bool { return usesVariable(part, variable) })
}

// ReadsParams reports whether the params of the subscription are asked for: where they
// are not, all subscriptions of a person are in the audience, or none.
func (a *Audience) ReadsParams() bool { return a.params }

// Has reports whether somebody is in the audience.
func (a *Audience) Has(p *Person) bool {
	who := map[string]any{"id": p.ID, "attributes": decodeObject(p.Attributes, a.scope.event.fields["subscriber"].fields["attributes"])}
	for name, value := range map[string]string{"locale": p.Locale, "time_zone": p.TimeZone} {
		if value != "" {
			who[name] = value
		}
	}
	sub := map[string]any{}
	if a.params {
		sub = decodeObject(p.Params, nil)
		for name, value := range sub {
			if number, ok := value.(int64); ok { // as in a rule, all numbers are doubles
				sub[name] = float64(number)
			}
		}
	}
	f := a.frames.Get().(*frame)
	defer a.frames.Put(f)
	f.begin(&Event{}, f.texts, a.paths.values.size)
	f.data = wholeDocument(map[string]any{"subscriber": who, "sub": sub})
	return a.condition.eval(f) == True
}

// decodeObject reads a JSON object; an empty one where there is none.
func decodeObject(raw []byte, s *schemaType) map[string]any {
	v, _ := decodeData(raw, s) // it was checked when it was put
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}
