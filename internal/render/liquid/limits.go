package liquid

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	osteele "github.com/osteele/liquid"
	liquidrender "github.com/osteele/liquid/render"
)

// What one part of one message may take. Whoever writes templates shares the server
// with others: without these, three loops in each other keep a core for hours, and a
// text that is appended to itself forty times ends the process.
const (
	maxIterations     = 1_000_000 // of all loops together
	maxStoredBytes    = 64 << 20  // of all that assign and capture have kept
	maxValueBytes     = maxRenderBytes
	maxProcessedBytes = 128 << 20 // that filters have gone through
	elementBytes      = 16        // that an element of a list counts for beside its text
)

// countFilter is one that only the compiler writes, before each filter that goes
// through all of its value: value | spend: effort, times.
const countFilter = "fanfare_spend"

// passing are the filters that go through all of their value, and sorting those that
// do it some times.
const (
	onePassFilters = " append capitalize compact concat downcase escape escape_once inspect join json lstrip map newline_to_br prepend raw remove remove_first" +
		" replace replace_first reverse rstrip safe slice split strip strip_html strip_newlines sum truncate truncatewords underline upcase url_decode url_encode where "
	sortingFilters = " sort sort_natural uniq "
	sortingPasses  = 16
)

// passes is how often a filter goes through its value; 0 is not at all.
func passes(filter string) int {
	switch {
	case strings.Contains(onePassFilters, " "+filter+" "):
		return 1
	case strings.Contains(sortingFilters, " "+filter+" "):
		return sortingPasses
	}
	return 0
}

// iterationTag is a tag that only the compiler writes: at the begin of each loop's body, and
// behind assign with the name of the variable.
const iterationTag = "fanfare_turn"

// limitedCaptureTag is what the compiler makes of capture: one that ends where a part must.
const limitedCaptureTag = "fanfare_capture"

var (
	errIterations = errors.New("its loops go round more than " + strconv.Itoa(maxIterations) + " times: loop over less")
	errStored     = errors.New("its variables hold more than " + strconv.Itoa(maxStoredBytes>>20) + " MB: keep less in them")
	errProcessed  = errors.New("its filters go through more than " + strconv.Itoa(maxProcessedBytes>>20) + " MB: let them do less, or not in a loop")
	errValue      = errors.New("a value is over " + strconv.Itoa(maxValueBytes>>20) + " MB: make less of it")
)

// Usage is what the rendering of a part has taken so far, and what it lacked.
type Usage struct {
	iterations, storedBytes, processedBytes int
	Missing                                 *MissingVariables
}

// usageVariable has it: no template may read this name, or make a variable of it.
const usageVariable = reservedPrefix + "effort"

// reservedPrefix begins the names that are the compiler's.
const reservedPrefix = "fanfare_"

func usageOf(ctx liquidrender.Context) *Usage { return ctx.Get(usageVariable).(*Usage) }

func (e *Usage) countIteration() error {
	if e.iterations++; e.iterations > maxIterations {
		return errIterations
	}
	return nil
}

func (e *Usage) countStored(value any) error {
	if e.storedBytes += shallowSize(value, maxStoredBytes-e.storedBytes); e.storedBytes > maxStoredBytes {
		return errStored
	}
	return nil
}

func (e *Usage) countProcessed(value any, times int) error {
	if e.processedBytes += times * deepSize(value, maxProcessedBytes-e.processedBytes); e.processedBytes > maxProcessedBytes {
		return errProcessed
	}
	return nil
}

// deepSize is about how many bytes there are in a value, in whatever depth, or some
// number above most.
func deepSize(value any, most int) int {
	switch v := value.(type) {
	case []any:
		sum := elementBytes
		for i := 0; i < len(v) && sum <= most; i++ {
			sum += deepSize(v[i], most-sum)
		}
		return sum
	case map[string]any:
		sum := elementBytes
		for key, one := range v {
			if sum += elementBytes + len(key) + deepSize(one, most-sum); sum > most {
				break
			}
		}
		return sum
	}
	return shallowSize(value, most)
}

// shallowSize is about how many bytes a value has, or some number above most.
func shallowSize(value any, most int) int {
	switch v := value.(type) {
	case string:
		return elementBytes + len(v)
	case preEscaped:
		return elementBytes + len(v)
	case []byte:
		return elementBytes + len(v)
	case []any:
		sum := elementBytes
		for i := 0; i < len(v) && sum <= most; i++ {
			sum += shallowSize(v[i], most-sum)
		}
		return sum
	}
	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return elementBytes
	}
	sum := elementBytes
	for i := 0; i < list.Len() && sum <= most; i++ {
		sum += shallowSize(list.Index(i).Interface(), most-sum)
	}
	return sum
}

// registerLimits adds the tags of the compiler, and the filters whose text may be longer than what they are given, each with an end.
func registerLimits(e *osteele.Engine) {
	e.RegisterTag(iterationTag, func(ctx liquidrender.Context) (string, error) {
		if name := strings.TrimSpace(ctx.TagArgs()); name != "" {
			return "", usageOf(ctx).countStored(ctx.Get(name))
		}
		return "", usageOf(ctx).countIteration()
	})
	e.RegisterBlock(limitedCaptureTag, func(ctx liquidrender.Context) (string, error) {
		var w boundedBuffer
		if err := ctx.RenderChildren(&w); err != nil {
			return "", err
		}
		text := w.String()
		ctx.Set(strings.TrimSpace(ctx.TagArgs()), text)
		return "", usageOf(ctx).countStored(text)
	})
	e.RegisterFilter(countFilter, func(value any, e *Usage, times int) (any, error) { return value, e.countProcessed(value, times) })
	e.RegisterFilter("uniq", unique)
	e.RegisterFilter("append", func(s, suffix string) (string, error) {
		return limitText(len(s)+len(suffix), func() string { return s + suffix })
	})
	e.RegisterFilter("prepend", func(s, prefix string) (string, error) {
		return limitText(len(s)+len(prefix), func() string { return prefix + s })
	})
	e.RegisterFilter("replace", func(s, old, with string) (string, error) {
		return limitText(len(s)+strings.Count(s, old)*(len(with)-len(old)), func() string { return strings.ReplaceAll(s, old, with) })
	})
	e.RegisterFilter("join", func(list []any, between func(string) string) (string, error) { return join(list, between(" ")) })
	e.RegisterFilter("concat", func(a, b []any) ([]any, error) {
		both := make([]any, 0, len(a)+len(b))
		if both = append(append(both, a...), b...); shallowSize(both, maxValueBytes) > maxValueBytes {
			return nil, errValue
		}
		return both, nil
	})
	e.RegisterFilter("url_encode", func(s string) (string, error) { return limitText(len(s), func() string { return url.QueryEscape(s) }) })
	e.RegisterFilter("escape", func(s string) (string, error) {
		return limitText(len(s), func() string { return html.EscapeString(s) })
	})
	e.RegisterFilter("newline_to_br", func(s string) (string, error) {
		return limitText(len(s), func() string { return strings.ReplaceAll(s, "\n", "<br />") })
	})
	e.RegisterFilter("json", func(value any) (any, error) {
		if value == nil {
			return "", nil
		}
		text, _ := json.Marshal(value) //nolint:errchkjson // what cannot be written is empty
		return text, checkSize(text)
	})
	e.RegisterFilter("inspect", func(value any) (string, error) {
		if value == nil {
			return "", nil
		}
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Appendf(nil, "%#v", value)
		}
		return string(text), checkSize(text)
	})
}

// unique leaves out what is in a list already. Lists and objects are one where they
// say the same.
func unique(list []any) (kept []any) {
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

// checkSize refuses a text that is too long.
func checkSize(text []byte) error {
	if len(text) > maxValueBytes {
		return errValue
	}
	return nil
}

// preEscape is a text that is not escaped again, unless it is too long.
func preEscape(text []byte) (any, error) { return preEscaped(text), checkSize(text) }

// limitText makes a text of about so many bytes, unless that is too long.
func limitText(bytes int, text func() string) (string, error) {
	if bytes > maxValueBytes {
		return "", errValue
	}
	return text(), nil
}

func join(list []any, between string) (string, error) {
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
