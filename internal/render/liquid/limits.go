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

// Limits of one part of one message. Authors of templates share the server: without limits,
// three nested loops keep a core busy for hours, and a text that is appended to itself forty
// times ends the process.
const (
	maxIterations     = 1_000_000 // iterations of all loops together
	maxStoredBytes    = 64 << 20  // values that assign and capture have stored
	maxValueBytes     = maxRenderBytes
	maxProcessedBytes = 128 << 20 // values that filters have read
	elementBytes      = 16        // counted for an element of a list in addition to its text
)

// countFilter is inserted by the compiler before each filter that reads all of its input: value
// | count: usage, passes.
const countFilter = "fanfare_count"

// onePassFilters read their input once, sortingFilters about sortingPasses times.
const (
	onePassFilters = " append capitalize compact concat downcase escape escape_once inspect join json lstrip map newline_to_br prepend raw remove remove_first" +
		" replace replace_first reverse rstrip safe slice split strip strip_html strip_newlines sum truncate truncatewords underline upcase url_decode url_encode where "
	sortingFilters = " sort sort_natural uniq "
	sortingPasses  = 16
)

// passes returns how often a filter reads its input; 0 is not at all.
func passes(filter string) int {
	switch {
	case strings.Contains(onePassFilters, " "+filter+" "):
		return 1
	case strings.Contains(sortingFilters, " "+filter+" "):
		return sortingPasses
	}
	return 0
}

// iterationTag is inserted by the compiler at the beginning of each loop's body and, with the
// name of the variable, after assign.
const iterationTag = "fanfare_iteration"

// limitedCaptureTag replaces capture: it bounds the captured text.
const limitedCaptureTag = "fanfare_capture"

var (
	errIterations = errors.New("the loops have more than " + strconv.Itoa(maxIterations) + " iterations; loop over fewer elements")
	errStored     = errors.New("the variables contain more than " + strconv.Itoa(maxStoredBytes>>20) + " MB; store less data in them")
	errProcessed  = errors.New("the filters process more than " + strconv.Itoa(maxProcessedBytes>>20) + " MB; use fewer filters, or move them out of loops")
	errValue      = errors.New("a value is larger than " + strconv.Itoa(maxValueBytes>>20) + " MB; make it smaller")
)

// Usage counts what the rendering of a part has consumed, and collects missing variables.
type Usage struct {
	iterations, storedBytes, processedBytes int
	Missing                                 *MissingVariables
}

// usageVariable is the variable that holds the Usage. No template can read or assign it.
const usageVariable = reservedPrefix + "usage"

// reservedPrefix begins the names that templates may not use.
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

// deepSize is about the number of bytes in a value, at any depth, or some number above most.
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

// shallowSize is about the number of bytes of a value without the members of objects, or some
// number above most.
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

// registerLimits adds the tags of the compiler, and bounds the filters whose output may be
// longer than their input.
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

// unique drops repeated elements of a list. Lists and objects are equal if their JSON is equal.
func unique(list []any) (kept []any) {
	type text string
	seen := make(map[any]bool, len(list))
	for _, item := range list {
		key := item
		if of := reflect.TypeOf(item); of != nil && !of.Comparable() {
			said, err := json.Marshal(item)
			if err != nil {
				kept = append(kept, item) // it cannot be compared
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

// preEscape marks text as escaped, unless it is too long.
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
