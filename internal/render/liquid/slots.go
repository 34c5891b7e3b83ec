package liquid

import (
	"strings"

	"github.com/osteele/liquid/values"
)

// Sharing tells for which recipients a node gives the same text. A later value is narrower.
type Sharing uint8

const (
	SharedByAll   Sharing = iota // all recipients of the batch
	SharedPerItem                // a loop over items that gives the same text for each item, whatever the other items are
	SharedByCount                // recipients with the same number of items
	SharedByItems                // recipients with the same items
	Personal                     // one recipient
)

// Sharing tells whose value the path reads. A loop over items reads nothing of them by itself.
func (p Path) Sharing() Sharing {
	switch p.Root {
	case "sub", "formatted", "subscriber", "subscription", "subscriptions", "unsubscribe_url", "preferences_url", FieldsVariable:
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
		return Personal // the subscriptions of an item, or the whole item
	}
	return SharedByAll
}

// widestSharing returns the narrowest sharing of all paths, which is that of their text.
func widestSharing(paths []Path) (widest Sharing) {
	for _, p := range paths {
		widest = max(widest, p.Sharing())
	}
	return widest
}

// sharing tells for which recipients the node gives the same text.
func (u *node) sharing() Sharing {
	r := widestSharing(u.paths)
	if r == SharedByItems && u.isPerItem() {
		return SharedPerItem
	}
	return r
}

// isPerItem reports whether the node is a loop over items whose passes do not depend on each
// other.
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

// A Field is a personal value that a template outputs unchanged. It is read without Liquid: a
// string of the recipient, or a value inside the recipient's JSON, which is found without
// decoding the rest.
type Field struct {
	Source FieldSource
	Path   []string // inside the JSON
	Steps  []any    // Path as Lookup takes it
	Name   string   // as it is in the template
	Line   int      // of the template
	Raw    bool     // not escaped

	Fallback any // argument of the filter default, or nil
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
	SubscriptionTitle
	SubscriptionDescription
	SubscriptionParams
	SubscriptionData
	RecipientData
	FormattedMessage
	UnsubscribeURL
	ItemCount
	OmittedCount
	ShownCount
)

// countFields are the counts of a digest.
var countFields = map[string]FieldSource{"count": ItemCount, "more": OmittedCount, "items.size": ShownCount}

// newField returns nil for a node that needs a Program.
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
	switch p.Root {
	case "sub":
		f.Source = RecipientData
		f.inside(names)
		return &f
	case "formatted":
		f.Source = FormattedMessage
		f.inside(names)
		return &f
	}
	source, known := map[string]FieldSource{
		"subscriber.id":            SubscriberID,
		"subscriber.address":       SubscriberAddress,
		"subscriber.locale":        SubscriberLocale,
		"subscriber.time_zone":     SubscriberTimeZone,
		"subscriber.attributes":    SubscriberAttributes,
		"subscription.id":          SubscriptionID,
		"subscription.rule":        SubscriptionRule,
		"subscription.title":       SubscriptionTitle,
		"subscription.description": SubscriptionDescription,
		"subscription.params":      SubscriptionParams,
		"subscription.data":        SubscriptionData,
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

// inside sets the path inside the JSON.
func (f *Field) inside(path []string) {
	f.Path = path
	for _, n := range path {
		f.Steps = append(f.Steps, n)
	}
}

// IsEmpty reports whether the filter default would replace a value.
func IsEmpty(value any) bool { return value == nil || values.IsEmpty(value) }

// IsEmptyJSON is IsEmpty for a JSON text.
func IsEmptyJSON(raw []byte) bool {
	switch string(raw) {
	case "null", "false", `""`:
		return true
	}
	return false
}

// AppendJSON appends the text of a JSON value, if the value need not be decoded.
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

// FlatText is a shared part that consists of text and of values without filters. It is written
// without the library, which takes many times as long for a batch of one recipient.
type FlatText []flatPiece

// A flatPiece is text, a value, or the place of a slot.
type flatPiece struct {
	text string // or the source of the path
	root string // of a value, or ""
	path []any
	slot bool
}

// addNode adds a shared node and reports whether FlatText can represent it.
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

// Texts returns the texts around the slots. It returns nil if there is too much text or a value
// is missing that must not be: the library then reports the error.
func (o FlatText) Texts(vars map[string]any, m Mode, absent *MissingVariables) [][]byte {
	var texts [][]byte
	var text []byte
	total := 0
	for _, s := range o {
		switch {
		case s.slot:
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
