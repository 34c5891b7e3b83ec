package condition

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// An Audience is a sender's condition on the recipients of an event, in the language of
// conditions. subscriber has id, locale, time_zone and attributes; sub holds the params of the
// subscription and data its data. Unknown values are missing, and a person for whom the condition is an error is not
// a member. It is safe for concurrent use.
type Audience struct {
	scope     *lang.Scope
	condition expr.Predicate
	paths     expr.PathTable
	params    bool
	data      bool
	frames    sync.Pool // of *expr.Frame
}

// maxAudienceNanos is the highest estimated time for one person: an event may have millions of
// recipients, and it delays the events behind it.
const maxAudienceNanos = 20_000

// A Person is a candidate for an audience.
type Person struct {
	ID, Locale, TimeZone string // "" if unknown
	Attributes           []byte // JSON object, or empty
	Params               []byte // of the subscription: JSON object, or empty
	Data                 []byte // of the subscription: JSON object, or empty
}

// NewAudience compiles a condition. attributes is the JSON Schema of subscribers' attributes;
// empty: the condition may use any attribute. The error has pointer /audience_filter, line and column.
func NewAudience(text string, attributes json.RawMessage) (*Audience, error) {
	known, err := lang.ParseSchema(attributes)
	if err != nil {
		return nil, err
	}
	env, err := cel.NewEnv(append(lang.LanguageOptions(), cel.Variable("subscriber", cel.DynType), cel.Variable("sub", cel.DynType),
		cel.Variable("data", cel.DynType))...)
	if err != nil {
		return nil, err
	}
	name := &lang.SchemaType{Kind: lang.KindString}
	sc := &lang.Scope{Env: env, NoEvent: true, Event: &lang.SchemaType{Kind: lang.KindMap, Fields: map[string]*lang.SchemaType{
		"data":       {Kind: lang.KindMap, Open: true},
		"sub":        {Kind: lang.KindMap, Open: true},
		"subscriber": {Kind: lang.KindMap, Fields: map[string]*lang.SchemaType{"id": name, "locale": name, "time_zone": name, "attributes": known}},
	}}}
	a, err := sc.Compile("/audience_filter", text)
	if e, ok := errors.AsType[*fanfare.Error](err); ok && strings.HasPrefix(e.Message, "unknown name") {
		e.Hint = "an audience filter can use subscriber.id, subscriber.locale, subscriber.time_zone, subscriber.attributes, sub (the params of the subscription) and data (its data)"
	}
	if err != nil {
		return nil, err
	}
	b := expr.Builder{Scope: sc, Ast: a}
	of := &Audience{scope: sc, condition: b.Build(a.Expr()), params: lang.UsesVariable(a.Expr(), "sub"), data: lang.UsesVariable(a.Expr(), "data")}
	if b.Err != nil {
		return nil, lang.Invalid("/audience_filter", "%v", b.Err)
	}
	if nanos := expr.NanosOf(of.condition); nanos > maxAudienceNanos {
		e := lang.Invalid("/audience_filter", "the condition needs about %d ns for each person; the limit is %d ns", nanos, maxAudienceNanos)
		e.Hint = "avoid nested loops; to search a list, write 'de' in subscriber.attributes.languages"
		return nil, e
	}
	of.paths.Link(b.Paths)
	texts := expr.NewTextTable()
	of.frames.New = func() any { return &expr.Frame{Texts: texts} }
	return of, nil
}

// ReadsSubscription reports whether the condition reads the params or the data of the subscription.
// If not, either all subscriptions of a person are in the audience, or none.
func (a *Audience) ReadsSubscription() bool { return a.params || a.data }

// Has reports whether a person is in the audience.
func (a *Audience) Has(p *Person) bool {
	who := map[string]any{"id": p.ID, "attributes": decodeObject(p.Attributes, a.scope.Event.Fields["subscriber"].Fields["attributes"])}
	for name, value := range map[string]string{"locale": p.Locale, "time_zone": p.TimeZone} {
		if value != "" {
			who[name] = value
		}
	}
	sub := map[string]any{}
	if a.params {
		sub = decodeObject(p.Params, nil)
		for name, value := range sub {
			if number, ok := value.(int64); ok { // as in a rule, where all numbers are doubles
				sub[name] = float64(number)
			}
		}
	}
	data := map[string]any{}
	if a.data {
		data = decodeObject(p.Data, nil)
	}
	f := a.frames.Get().(*expr.Frame)
	defer a.frames.Put(f)
	f.Begin(&Event{}, f.Texts, a.paths.Values.Size)
	f.Data = expr.WholeDocument(map[string]any{"subscriber": who, "sub": sub, "data": data})
	return a.condition.Eval(f) == expr.True
}

// decodeObject decodes a JSON object; it is empty if there is none.
func decodeObject(raw []byte, s *lang.SchemaType) map[string]any {
	v, _ := expr.DecodeData(raw, s) // the registry has validated it
	if m, ok := v.(map[string]any); ok {
		return m
	}
	return map[string]any{}
}
