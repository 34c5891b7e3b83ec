package liquid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"reflect"
	"strconv"
	"strings"

	osteele "github.com/osteele/liquid"

	"fanfare.dev/fanfare/internal/render/bodies"
)

// Mode is the way in which values become text in a part.
type Mode uint8

const (
	Plain     Mode = iota // subject and text: unchanged
	HTML                  // HTML: escaped
	JSON                  // JSON: escaped as inside quotes
	modeCount             // number of modes
)

// preEscaped is text that is HTML or JSON already and is not escaped again.
type preEscaped string

// Filters that only the compiler inserts. A template that names one is refused, as if the
// filter did not exist.
const (
	readFilter         = "fanfare_read"          // base | read: usage, "path", step... : the value; nil and a report if it is missing
	readOptionalFilter = "fanfare_read_optional" // base | read_optional: "path", step... : the same without a report
	listFilter         = "fanfare_list"          // value | list: an empty list for nil
	boundFilter        = "fanfare_bound"         // value | bound: no limit of a loop, and no offset, for nil
	slotFilter         = "fanfare_slot"          // n | slot: the mark of slot n
	outputFilter       = "fanfare_out"           // value | out: its text, escaped as the part needs
)

// FilterNames lists the filters that templates may use, without the localized ones.
const FilterNames = " abs append capitalize ceil compact concat date default divided_by downcase escape escape_once" +
	" first floor inspect join json last lstrip map minus modulo newline_to_br plus prepend raw remove remove_first" +
	" replace replace_first reverse round rstrip safe size slice sort sort_natural split strip strip_html" +
	" strip_newlines sum times truncate truncatewords underline uniq upcase url_decode url_encode where "

func knownFilter(name string) bool {
	return strings.Contains(FilterNames+LocalizedFilterNames, " "+name+" ")
}

// newEngine returns an engine of the library with its own filters and those above. An engine
// must not change after its first template, so each part has its own.
func newEngine(m Mode, content *NotifyContent) *osteele.Engine {
	e := osteele.NewEngine()
	e.UnregisterTag("include") // it would read files of the server
	e.UnregisterTag("render")
	e.RegisterFilter(readFilter, func(base any, e *Usage, name string, path ...any) (any, error) {
		value, object, ok := follow(base, path)
		if !ok {
			return nil, e.Missing.Report(name, object)
		}
		return value, nil
	})
	e.RegisterFilter(readOptionalFilter, func(base any, _ string, path ...any) any {
		value, _ := Lookup(base, path)
		return value
	})
	e.RegisterFilter(listFilter, func(value any) any {
		if value == nil {
			return []any{}
		}
		return value
	})
	e.RegisterFilter(boundFilter, func(value any) any {
		if value == nil {
			return -1
		}
		return value
	})
	e.RegisterFilter("divided_by", divide)
	e.RegisterFilter("underline", func(value any, sign func(string) string) (string, error) { return underline(value, sign("-")) })
	e.RegisterFilter(slotFilter, func(n int) string { return slotMark + strconv.Itoa(n) + slotMark })
	e.RegisterFilter(outputFilter, func(value any) string { return string(AppendValue(nil, value, m)) })
	registerLocalized(e)
	registerLimits(e)
	if content != nil {
		registerNotify(e, content)
	}
	markSafe := func(value any) any { return preEscaped(AppendValue(nil, value, Plain)) }
	e.RegisterFilter("raw", markSafe)
	e.RegisterFilter("safe", markSafe)
	if m == JSON {
		e.RegisterFilter("json", func(value any) (any, error) {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			return preEscape(text)
		})
	}
	if m == HTML {
		e.RegisterFilter("escape", func(value any) (any, error) { return preEscape(AppendValue(nil, value, HTML)) })
		e.RegisterFilter("escape_once", func(s string) any { return preEscaped(html.EscapeString(html.UnescapeString(s))) })
		e.RegisterFilter("newline_to_br", func(value any) (any, error) {
			return preEscape(bytes.ReplaceAll(AppendValue(nil, value, HTML), []byte("\n"), []byte("<br>\n")))
		})
	}
	return e
}

// underline is the filter underline: a line as wide as the value, to be set below a heading.
func underline(value any, sign string) (string, error) {
	switch {
	case sign == "": // the template reads a sign that is missing
		sign = "-"
	case len(sign) > 1:
		return "", errSign
	}
	return bodies.Underline(string(AppendValue(nil, value, Plain)), sign), nil
}

var errSign = errors.New("underline requires one ASCII character, such as underline: \"=\"")

// divide is the filter divided_by. Two integers give an integer, and nil gives nil.
func divide(a float64, b any) (any, error) {
	switch b := b.(type) {
	case nil:
		return nil, nil
	case float64:
		if b != 0 {
			return a / b, nil
		}
		return nil, errDivision
	}
	n := reflect.ValueOf(b)
	switch {
	case !n.CanInt():
		return nil, fmt.Errorf("%.60q is not a number", fmt.Sprint(b))
	case n.Int() == 0:
		return nil, errDivision
	}
	return int64(a) / n.Int(), nil
}

var errDivision = errors.New("division by zero")

// An undefinedError names a variable that a message needs and that is missing.
type undefinedError string

func (e undefinedError) Error() string { return UndefinedPrefix + string(e) }

const UndefinedPrefix = "undefined variable "
