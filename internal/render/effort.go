package render

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/osteele/liquid"
	liquidrender "github.com/osteele/liquid/render"
)

// What one part of one message may take. Whoever writes templates shares the server
// with others: without these, three loops in each other keep a core for hours, and a
// text that is appended to itself forty times ends the process.
const (
	maxTurns      = 1_000_000 // of all loops together
	maxHeldBytes  = 64 << 20  // of all that assign and capture have kept
	maxValueBytes = maxRenderBytes
	maxSpentBytes = 128 << 20 // that filters have gone through
	elementBytes  = 16        // that an element of a list counts for beside its text
)

// spendFilter is one that only the compiler writes, before each filter that goes
// through all of its value: value | spend: effort, times.
const spendFilter = "fanfare_spend"

// passing are the filters that go through all of their value, and sorting those that
// do it some times.
const (
	passing = " append capitalize compact concat downcase escape escape_once inspect join json lstrip map newline_to_br prepend raw remove remove_first" +
		" replace replace_first reverse rstrip safe slice split strip strip_html strip_newlines sum truncate truncatewords underline upcase url_decode url_encode where "
	sorting      = " sort sort_natural uniq "
	sortingTimes = 16
)

// passes is how often a filter goes through its value; 0 is not at all.
func passes(filter string) int {
	switch {
	case strings.Contains(passing, " "+filter+" "):
		return 1
	case strings.Contains(sorting, " "+filter+" "):
		return sortingTimes
	}
	return 0
}

// turnTag is a tag that only the compiler writes: at the begin of each loop's body, and
// behind assign with the name of the variable.
const turnTag = "fanfare_turn"

// captureTag is what the compiler makes of capture: one that ends where a part must.
const captureTag = "fanfare_capture"

var (
	errTurns = errors.New("its loops go round more than " + strconv.Itoa(maxTurns) + " times: loop over less")
	errHeld  = errors.New("its variables hold more than " + strconv.Itoa(maxHeldBytes>>20) + " MB: keep less in them")
	errSpent = errors.New("its filters go through more than " + strconv.Itoa(maxSpentBytes>>20) + " MB: let them do less, or not in a loop")
	errValue = errors.New("a value is over " + strconv.Itoa(maxValueBytes>>20) + " MB: make less of it")
)

// effort is what the rendering of a part has taken so far, and what it lacked.
type effort struct {
	turns, held, spent int
	absent             *absences
}

// effortVariable has it: no template may read this name, or make a variable of it.
const effortVariable = ownPrefix + "effort"

// ownPrefix begins the names that are the compiler's.
const ownPrefix = "fanfare_"

func effortOf(ctx liquidrender.Context) *effort { return ctx.Get(effortVariable).(*effort) }

func (e *effort) turn() error {
	if e.turns++; e.turns > maxTurns {
		return errTurns
	}
	return nil
}

func (e *effort) hold(value any) error {
	if e.held += weight(value, maxHeldBytes-e.held); e.held > maxHeldBytes {
		return errHeld
	}
	return nil
}

func (e *effort) spend(value any, times int) error {
	if e.spent += times * through(value, maxSpentBytes-e.spent); e.spent > maxSpentBytes {
		return errSpent
	}
	return nil
}

// through is about how many bytes there are in a value, in whatever depth, or some
// number above most.
func through(value any, most int) int {
	switch v := value.(type) {
	case []any:
		sum := elementBytes
		for i := 0; i < len(v) && sum <= most; i++ {
			sum += through(v[i], most-sum)
		}
		return sum
	case map[string]any:
		sum := elementBytes
		for key, one := range v {
			if sum += elementBytes + len(key) + through(one, most-sum); sum > most {
				break
			}
		}
		return sum
	}
	return weight(value, most)
}

// weight is about how many bytes a value has, or some number above most.
func weight(value any, most int) int {
	switch v := value.(type) {
	case string:
		return elementBytes + len(v)
	case safe:
		return elementBytes + len(v)
	case []byte:
		return elementBytes + len(v)
	case []any:
		sum := elementBytes
		for i := 0; i < len(v) && sum <= most; i++ {
			sum += weight(v[i], most-sum)
		}
		return sum
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return elementBytes
	}
	sum := elementBytes
	for i := 0; i < list.Len() && sum <= most; i++ {
		sum += weight(list.Index(i).Interface(), most-sum)
	}
	return sum
}

// registerEffort adds the tags of the compiler, and the filters whose text may be longer than what they are given, each with an end.
func registerEffort(e *liquid.Engine) {
	e.RegisterTag(turnTag, func(ctx liquidrender.Context) (string, error) {
		if name := strings.TrimSpace(ctx.TagArgs()); name != "" {
			return "", effortOf(ctx).hold(ctx.Get(name))
		}
		return "", effortOf(ctx).turn()
	})
	e.RegisterBlock(captureTag, func(ctx liquidrender.Context) (string, error) {
		var w bounded
		if err := ctx.RenderChildren(&w); err != nil {
			return "", err
		}
		text := w.String()
		ctx.Set(strings.TrimSpace(ctx.TagArgs()), text)
		return "", effortOf(ctx).hold(text)
	})
	e.RegisterFilter(spendFilter, func(value any, e *effort, times int) (any, error) { return value, e.spend(value, times) })
	e.RegisterFilter("uniq", distinct)
	e.RegisterFilter("append", func(s, suffix string) (string, error) {
		return limited(len(s)+len(suffix), func() string { return s + suffix })
	})
	e.RegisterFilter("prepend", func(s, prefix string) (string, error) {
		return limited(len(s)+len(prefix), func() string { return prefix + s })
	})
	e.RegisterFilter("replace", func(s, old, with string) (string, error) {
		return limited(len(s)+strings.Count(s, old)*(len(with)-len(old)), func() string { return strings.ReplaceAll(s, old, with) })
	})
	e.RegisterFilter("join", func(list []any, between func(string) string) (string, error) { return joined(list, between(" ")) })
	e.RegisterFilter("concat", func(a, b []any) ([]any, error) {
		both := make([]any, 0, len(a)+len(b))
		if both = append(append(both, a...), b...); weight(both, maxValueBytes) > maxValueBytes {
			return nil, errValue
		}
		return both, nil
	})
	e.RegisterFilter("url_encode", func(s string) (string, error) { return limited(len(s), func() string { return url.QueryEscape(s) }) })
	e.RegisterFilter("escape", func(s string) (string, error) { return limited(len(s), func() string { return html.EscapeString(s) }) })
	e.RegisterFilter("newline_to_br", func(s string) (string, error) {
		return limited(len(s), func() string { return strings.ReplaceAll(s, "\n", "<br />") })
	})
	e.RegisterFilter("json", func(value any) (any, error) {
		if value == nil {
			return "", nil
		}
		text, _ := json.Marshal(value) //nolint:errchkjson // what cannot be written is empty
		return text, fits(text)
	})
	e.RegisterFilter("inspect", func(value any) (string, error) {
		if value == nil {
			return "", nil
		}
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Appendf(nil, "%#v", value)
		}
		return string(text), fits(text)
	})
}

// distinct leaves out what is in a list already. Lists and objects are one where they
// say the same.
func distinct(list []any) (kept []any) {
	type text string
	seen := make(map[any]bool, len(list))
	for _, item := range list {
		key := item
		if of := reflect.TypeOf(item); of != nil && !of.Comparable() {
			said, err := json.Marshal(item)
			if err != nil {
				kept = append(kept, item) // nobody can tell
				continue
			}
			key = text(said)
		}
		if !seen[key] {
			seen[key] = true
			kept = append(kept, item)
		}
	}
	return kept
}

// fits refuses a text that is too long.
func fits(text []byte) error {
	if len(text) > maxValueBytes {
		return errValue
	}
	return nil
}

// safely is a text that is not escaped again, unless it is too long.
func safely(text []byte) (any, error) { return safe(text), fits(text) }

// limited makes a text of about so many bytes, unless that is too long.
func limited(bytes int, text func() string) (string, error) {
	if bytes > maxValueBytes {
		return "", errValue
	}
	return text(), nil
}

func joined(list []any, between string) (string, error) {
	var b strings.Builder
	first := true
	for _, v := range list {
		if v == nil {
			continue
		}
		if !first {
			b.WriteString(between)
		}
		first = false
		if fmt.Fprint(&b, v); b.Len() > maxValueBytes {
			return "", errValue
		}
	}
	return b.String(), nil
}
