package liquid

import (
	"strings"

	"github.com/osteele/liquid/values"
)

// A reach says for whom a stretch of a message is the same.
type Sharing uint8

const (
	SharedByAll   Sharing = iota // who gets the mailing
	SharedPerItem                // a loop over items that says the same of each, whichever stand beside it
	SharedByCount                // who has as many items
	SharedByItems                // who has the same items
	Personal                     // nobody else
)

// Sharing says whose value the path leads to. A loop over items reads nothing of them
// by itself.
func (p Path) Sharing() Sharing {
	switch p.Root {
	case "sub", "subscriber", "subscription", "subscriptions", "unsubscribe_url", "preferences_url", FieldsVariable:
		return Personal
	case "count", "more":
		return SharedByCount
	case "items":
		switch s := p.Steps; {
		case len(s) == 1 && s[0].Name == "size":
			return SharedByCount
		case p.Looped && len(s) == 0, len(s) > 1 && (s[1].Name == "event" || s[1].Name == "meta"):
			return SharedByItems
		}
		return Personal // the subscriptions of an item, or all there is of it
	}
	return SharedByAll
}

// widestSharing is the widest reach that all paths together have.
func widestSharing(paths []Path) (widest Sharing) {
	for _, p := range paths {
		widest = max(widest, p.Sharing())
	}
	return widest
}

// sharing says for whom the unit is the same.
func (u *node) sharing() Sharing {
	r := widestSharing(u.paths)
	if r == SharedByItems && u.isPerItem() {
		return SharedPerItem
	}
	return r
}

// isPerItem reports whether the unit is a loop over items whose turns know nothing of
// each other.
func (u *node) isPerItem() bool {
	if u.loopVariable == "" || u.ordered {
		return false
	}
	loops := 0
	for _, p := range u.paths {
		own := strings.HasPrefix(p.Text, u.loopVariable+".") || strings.HasPrefix(p.Text, u.loopVariable+"[")
		switch {
		case p.Root == "items" && p.Looped && len(p.Steps) == 0:
			loops++
		case p.Sharing() != SharedByAll && !own:
			return false
		case strings.HasPrefix(p.Text, "forloop"):
			return false
		}
	}
	return loops == 1
}

// A field is a personal value that a template puts out as it is. It is read
// where it stands: a string of the recipient, or a value inside its JSON, found
// without decoding what is around it.
type Field struct {
	Source FieldSource
	Path   []string // inside the JSON
	Steps  []any    // the same, as lookup takes it
	Name   string   // as the template spells it
	Line   int      // of the template
	Raw    bool     // not escaped

	Fallback any // of the filter default, or nil
}

type FieldSource uint8

const (
	SubscriberID FieldSource = iota
	SubscriberAddress
	SubscriberLocale
	SubscriberTimeZone
	SubscriberAttributes
	SubscriptionID
	SubscriptionRule
	SubscriptionParams
	SubscriptionData
	RecipientData
	UnsubscribeURL
	ItemCount
	OmittedCount
	ShownCount
)

// countFields are the numbers that a digest has.
var countFields = map[string]FieldSource{"count": ItemCount, "more": OmittedCount, "items.size": ShownCount}

// newField returns nil for a unit that needs a template.
func newField(u node) *Field {
	if u.singlePath == nil {
		return nil
	}
	p := *u.singlePath
	names, ok := p.Names()
	if !ok {
		return nil
	}
	f := Field{Name: p.Text, Line: p.Line, Raw: u.raw, Fallback: u.fallback}
	if p.Root == "unsubscribe_url" && len(names) == 0 {
		f.Source = UnsubscribeURL
		return &f
	}
	if from, ok := countFields[strings.Join(append([]string{p.Root}, names...), ".")]; ok {
		f.Source = from
		return &f
	}
	if len(names) == 0 {
		return nil
	}
	if p.Root == "sub" {
		f.Source = RecipientData
		f.inside(names)
		return &f
	}
	source, known := map[string]FieldSource{
		"subscriber.id":         SubscriberID,
		"subscriber.address":    SubscriberAddress,
		"subscriber.locale":     SubscriberLocale,
		"subscriber.time_zone":  SubscriberTimeZone,
		"subscriber.attributes": SubscriberAttributes,
		"subscription.id":       SubscriptionID,
		"subscription.rule":     SubscriptionRule,
		"subscription.params":   SubscriptionParams,
		"subscription.data":     SubscriptionData,
	}[p.Root+"."+names[0]]
	nested := names[1:]
	inJSON := source == SubscriberAttributes || source == SubscriptionParams || source == SubscriptionData
	if !known || len(nested) > 0 && !inJSON {
		return nil
	}
	f.Source = source
	f.inside(nested)
	return &f
}

// inside sets where in its JSON the field is.
func (f *Field) inside(path []string) {
	f.Path = path
	for _, n := range path {
		f.Steps = append(f.Steps, n)
	}
}

// IsEmpty reports whether the filter default would replace a value.
func IsEmpty(value any) bool { return value == nil || values.IsEmpty(value) }

// IsEmptyJSON reports whether the filter default would replace a value of JSON.
func IsEmptyJSON(raw []byte) bool {
	switch string(raw) {
	case "null", "false", `""`:
		return true
	}
	return false
}

// AppendJSON appends the text of a JSON value if that needs no decoding.
func AppendJSON(dst, raw []byte, m Mode) ([]byte, bool) {
	switch c := raw[0]; {
	case c == '"':
		return AppendText(dst, raw[1:len(raw)-1], m), true
	case string(raw) == "null":
		return dst, true
	case string(raw) == "true" || string(raw) == "false":
		return append(dst, raw...), true
	case c == '-' || digit(c):
		if len(raw) < 16 && c != '-' && allDigits(raw) {
			return append(dst, raw...), true
		}
		return AppendValue(dst, parseNumber(string(raw)), m), true
	}
	return dst, false
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if !digit(c) {
			return false
		}
	}
	return true
}

// An outline is a split part of which all that recipients share is text and values put
// out as they are: it is written without Liquid, which takes many times as long for a
// part that one event alone has. nil: the part has more.
type FlatText []flatPiece

// A stroke is text, a value, or the place of a personal piece.
type flatPiece struct {
	text  string // or the path, as the template spells it
	root  string // of the value, "" for none
	path  []any
	piece bool
}

// addNode takes the next unit that is shared, and reports whether an outline can have it.
func (o *FlatText) addNode(u *node) bool {
	if u.singlePath == nil {
		if len(u.paths) > 0 || strings.Contains(u.source, "{{") || strings.Contains(u.source, "{%") {
			return false
		}
		*o = append(*o, flatPiece{text: u.source})
		return true
	}
	names, ok := u.singlePath.Names()
	if !ok || len(names) == 0 || u.raw || u.fallback != nil {
		return false
	}
	s := flatPiece{root: u.singlePath.Root, text: QuotePath(u.singlePath.Text)}
	for _, name := range names {
		s.path = append(s.path, name)
	}
	*o = append(*o, s)
	return true
}

// Texts writes what is shared, as it stands between the pieces. It returns none where
// there is too much or a value may not be missing: Liquid says what is wrong.
func (o FlatText) Texts(vars map[string]any, m Mode, absent *MissingVariables) [][]byte {
	var texts [][]byte
	var text []byte
	total := 0
	for _, s := range o {
		switch {
		case s.piece:
			texts = append(texts, text)
			total, text = total+len(text), nil
		case s.root == "":
			text = append(text, s.text...)
		default:
			value, ok := Lookup(vars[s.root], s.path)
			if !ok && absent.Report(s.text, true) != nil {
				return nil
			}
			text = AppendValue(text, value, m)
		}
		if total+len(text) > maxRenderBytes {
			return nil
		}
	}
	return append(texts, text)
}
