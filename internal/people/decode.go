package people

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
	"unsafe"

	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/rawjson"
)

// maxSpecBytes limits the JSON of one put.
const maxSpecBytes = 128 << 10

// DecodeSubscription reads the JSON object of one put. It is strict: an unknown field, a
// repeated field, a value of the wrong type and data after the object are errors with
// the name of the field. null means the same as an absent field.
//
// It copies line once. p refers only to that copy, so line may be reused.
func DecodeSubscription(line []byte, p *SubscriptionPut) error {
	*p = SubscriptionPut{}
	if len(line) > maxSpecBytes {
		return inputerror.TooLarge("", len(line), maxSpecBytes)
	}
	d := specDecoder{b: append(make([]byte, 0, len(line)), line...)}
	err := d.object(p)
	p.decoded = err == nil
	return err
}

// A specDecoder reads the copy of one line.
type specDecoder struct {
	b []byte
	i int
}

var specFields = []string{"id", "topic", "channel", "to", "subscriber", "filter", "rule", "locale", "time_zone", "params", "data", "attributes", "state", "cadence", "consent", "title", "description"}

// textField and raw return the destination of a field, and its bit in the set of fields seen.
func (p *SubscriptionPut) textField(name string) (*string, uint) {
	switch name {
	case "topic":
		return &p.Topic, 1 << 0
	case "channel":
		return &p.Channel, 1 << 1
	case "to":
		return &p.To, 1 << 2
	case "filter":
		return &p.Filter, 1 << 3
	case "rule":
		return &p.Rule, 1 << 4
	case "id":
		return &p.ID, 1 << 5
	case "locale":
		return &p.Locale, 1 << 6
	case "time_zone":
		return &p.TimeZone, 1 << 7
	case "subscriber":
		return &p.Subscriber, 1 << 11
	case "state":
		return &p.State, 1 << 12
	case "cadence":
		return &p.Cadence, 1 << 13
	case "title":
		return &p.Title, 1 << 15
	case "description":
		return &p.Description, 1 << 16
	}
	return nil, 0
}

func (p *SubscriptionPut) objectField(name string) (*json.RawMessage, uint) {
	switch name {
	case "params":
		return &p.Params, 1 << 8
	case "data":
		return &p.Data, 1 << 9
	case "attributes":
		return &p.Attributes, 1 << 10
	case "consent":
		return &p.Consent, 1 << 14
	}
	return nil, 0
}

func (d *specDecoder) object(p *SubscriptionPut) error {
	if !d.take('{') {
		return inputerror.Invalid("", "send one object, or NDJSON with one on each line", "a subscription must be a JSON object")
	}
	var seen uint
	for first := true; ; first = false {
		if d.take('}') {
			break
		}
		if !first && !d.take(',') {
			return d.syntax("a comma or the end of the object is missing")
		}
		d.space()
		name, ok := d.str()
		if !ok {
			return d.syntax("the name of a field is missing")
		}
		if !d.take(':') {
			return d.syntax("a colon is missing after the name of a field")
		}
		d.space()
		bit, err := d.field(p, name)
		if err != nil {
			return err
		}
		if seen&bit != 0 {
			return inputerror.Invalid(inputerror.Pointer(name), "", "%s occurs twice", name)
		}
		seen |= bit
	}
	if d.space(); d.i != len(d.b) {
		return d.syntax("unexpected data after the object")
	}
	return nil
}

func (d *specDecoder) field(p *SubscriptionPut, name string) (uint, error) {
	if dst, bit := p.textField(name); dst != nil {
		if d.null() {
			return bit, nil
		}
		s, ok := d.str()
		if !ok {
			return 0, d.wrong(name, "a string")
		}
		*dst = s
		return bit, nil
	}
	dst, bit := p.objectField(name)
	if dst == nil {
		return 0, inputerror.Invalid(inputerror.Pointer(name), inputerror.DidYouMean(name, slices.Values(specFields), ""), "unknown field %s", inputerror.Quote(name))
	}
	if d.null() {
		return bit, nil
	}
	from := d.i
	if d.i == len(d.b) || d.b[d.i] != '{' {
		return 0, d.wrong(name, "an object")
	}
	end := rawjson.End(d.b, from, 1)
	if end < 0 {
		return 0, inputerror.Invalid(inputerror.Pointer(name), "", "%s is not valid JSON", name)
	}
	d.i = end
	*dst = d.b[from:d.i:d.i]
	return bit, nil
}

// wrong returns the error for a value of the wrong type, or with invalid syntax.
func (d *specDecoder) wrong(name, want string) error {
	if d.i < len(d.b) && d.b[d.i] == '"' && want == "a string" {
		return inputerror.Invalid(inputerror.Pointer(name), "", "%s is not a valid JSON string", name)
	}
	return inputerror.Invalid(inputerror.Pointer(name), "", "%s must be %s", name, want)
}

func (d *specDecoder) syntax(what string) error {
	e := inputerror.Invalid("", "", "not valid JSON: %s", what)
	e.Line, e.Column = 1, d.i+1
	return e
}

func (d *specDecoder) space() {
	d.i = rawjson.SkipSpace(d.b, d.i)
}

func (d *specDecoder) take(c byte) bool {
	d.space()
	if d.i < len(d.b) && d.b[d.i] == c {
		d.i++
		return true
	}
	return false
}

func (d *specDecoder) null() bool {
	if len(d.b)-d.i >= 4 && string(d.b[d.i:d.i+4]) == "null" {
		d.i += 4
		return true
	}
	return false
}

// str reads a string. A string without escapes is not copied again.
func (d *specDecoder) str() (string, bool) {
	if d.i == len(d.b) || d.b[d.i] != '"' {
		return "", false
	}
	from := d.i
	ascii := true
	for i := from + 1; i < len(d.b); i++ {
		switch c := d.b[i]; {
		case c == '"':
			s := d.b[from+1 : i]
			if !ascii && !utf8.Valid(s) {
				return "", false
			}
			d.i = i + 1
			return unsafe.String(unsafe.SliceData(s), len(s)), true //nolint:gosec // d.b is the decoder's own and never written again
		case c == '\\':
			return d.escaped(from)
		case c < ' ':
			return "", false
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// escaped reads the string that begins at from with encoding/json.
func (d *specDecoder) escaped(from int) (string, bool) {
	end := stringEnd(d.b, from)
	if end < 0 || !utf8.Valid(d.b[from:end]) {
		return "", false
	}
	var s string
	if json.Unmarshal(d.b[from:end], &s) != nil {
		return "", false
	}
	d.i = end
	return s, true
}

// stringEnd returns the index after the string that begins at from, or -1.
func stringEnd(b []byte, from int) int {
	for i := from + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}
