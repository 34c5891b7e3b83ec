package query

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of the parameters of a request.
const (
	maxTextBytes  = 64 << 10 // of filter and where
	maxNesting    = 16
	maxValues     = 5000 // of a parameter
	maxParameters = 1000 // in the bracket form
)

// An Error is a mistake in a parameter; the API answers 400 with it.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

func invalid(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// A Query is the parsed filter and where of a request.
type Query struct {
	where      condition // nil: all records
	fields     projection
	order      []sortKey
	skip       int
	limit      int // 0: all
	paths      Paths
	evaluation evaluation
}

// Parse reads filter and where from the parameters of a request; other parameters are ignored. The
// error is an *Error.
func Parse(values url.Values) (*Query, error) {
	q := &Query{}
	filter, err := parameter(values, "filter")
	if err != nil {
		return nil, err
	}
	where, err := parameter(values, "where")
	if err != nil {
		return nil, err
	}
	members, ok := filter.(object)
	if filter != nil && !ok {
		return nil, invalid("filter must be an object with the members where, fields, order, skip and limit")
	}
	for _, m := range members {
		switch m.name {
		case "where":
			if q.where, err = parseWhere(m.value); err == nil {
				q.paths = pathsOf(q.where)
			}
		case "fields":
			q.fields, err = parseFields(m.value)
		case "order":
			q.order, err = parseOrder(m.value)
		case "skip":
			q.skip, err = parseCount("skip", m.value)
		case "limit":
			q.limit, err = parseCount("limit", m.value)
		default:
			err = invalid("filter.%s is not supported; filter has the members where, fields, order, skip and limit", m.name)
		}
		if err != nil {
			return nil, err
		}
	}
	if where != nil {
		if q.where, err = parseWhere(where); err != nil {
			return nil, err
		}
		q.paths = pathsOf(q.where)
	}
	return q, nil
}

// An object is a JSON object with its members in their order.
type object []member

type member struct {
	name  string
	value any
}

func (o object) get(name string) (any, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return nil, false
}

// plain returns a value without the order of members, as records have it.
func plain(v any) any {
	switch x := v.(type) {
	case object:
		m := make(map[string]any, len(x))
		for _, one := range x {
			m[one.name] = plain(one.value)
		}
		return m
	case []any:
		list := make([]any, len(x))
		for i, one := range x {
			list[i] = plain(one)
		}
		return list
	}
	return v
}

// parameter returns a parameter in one of its forms; nil if it is absent.
func parameter(values url.Values, name string) (any, error) {
	var texts []string
	var tree *branch
	size, count := 0, 0
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key != name && !strings.HasPrefix(key, name+"[") {
			continue
		}
		for _, text := range values[key] {
			size += len(key) + len(text)
			count++
		}
		switch {
		case size > maxTextBytes:
			return nil, invalid("%s has more than %d bytes", name, maxTextBytes)
		case count > maxParameters:
			return nil, invalid("%s has more than %d parameters", name, maxParameters)
		}
		if key == name {
			texts = values[key]
			continue
		}
		steps, err := bracketSteps(key, key[len(name):])
		if err != nil {
			return nil, err
		}
		if tree == nil {
			tree = &branch{}
		}
		for _, text := range values[key] {
			if err := tree.add(key, steps, text); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(texts) > 1 || len(texts) == 1 && tree != nil:
		return nil, invalid("%s is given more than once", name)
	case tree != nil:
		return tree.value(), nil
	case len(texts) == 0 || texts[0] == "":
		return nil, nil
	}
	return decode(name, texts[0])
}

// decode decodes a parameter in JSON.
func decode(name, text string) (any, error) {
	d := decoder{json.NewDecoder(strings.NewReader(text)), 0}
	v, err := d.value(0)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more text after the value")
		}
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return nil, invalid("%s: %s", name, e.Message)
	}
	if err != nil {
		return nil, invalid("%s is not valid JSON: %v", name, err)
	}
	return v, nil
}

// A decoder decodes JSON and keeps the order of members.
type decoder struct {
	*json.Decoder
	values int
}

func (d *decoder) value(depth int) (any, error) {
	if d.values++; d.values > maxValues {
		return nil, invalid("there are more than %d values", maxValues)
	}
	t, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	delimiter, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth >= maxNesting {
		return nil, invalid("it is nested deeper than %d levels", maxNesting)
	}
	if delimiter == '[' {
		list := []any{}
		for d.More() {
			v, err := d.value(depth + 1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	o := object{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := d.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o = append(o, member{name.(string), v})
	}
	_, err = d.Token()
	return o, err
}

// bracketSteps splits [a][b][] into its names.
func bracketSteps(key, brackets string) (steps []string, err error) {
	for brackets != "" {
		end := strings.IndexByte(brackets, ']')
		if brackets[0] != '[' || end < 0 {
			return nil, invalid("the brackets of %s are not closed", key)
		}
		steps = append(steps, brackets[1:end])
		brackets = brackets[end+1:]
	}
	if len(steps) > maxNesting {
		return nil, invalid("%.40s is nested deeper than %d levels", key, maxNesting)
	}
	return steps, nil
}

// A branch is an object or a list of the bracket form, under construction.
type branch struct {
	names  []string
	values map[string]any // a *branch, or []string
}

func (b *branch) add(key string, steps []string, text string) error {
	name := steps[0]
	if name == "" && len(steps) > 1 { // each list[][name] is an element of its own
		name = strconv.Itoa(len(b.names))
	}
	if b.values == nil {
		b.values = map[string]any{}
	}
	known, exists := b.values[name]
	if !exists {
		b.names = append(b.names, name)
	}
	if len(steps) == 1 {
		texts, isText := known.([]string)
		if exists && !isText {
			return invalid("%s is a value and an object at the same time", key)
		}
		b.values[name] = append(texts, text)
		return nil
	}
	inner, isBranch := known.(*branch)
	if exists && !isBranch {
		return invalid("%s is a value and an object at the same time", key)
	}
	if !exists {
		inner = &branch{}
		b.values[name] = inner
	}
	return inner.add(key, steps[1:], text)
}

// value returns the branch as decoded JSON: a list if all its names are numbers or empty.
func (b *branch) value() any {
	isList := !slices.ContainsFunc(b.names, func(name string) bool {
		_, err := strconv.ParseUint(name, 10, 16)
		return name != "" && err != nil
	})
	one := func(v any) any {
		if inner, ok := v.(*branch); ok {
			return inner.value()
		}
		texts := v.([]string)
		if len(texts) == 1 {
			return texts[0]
		}
		list := make([]any, len(texts))
		for i, text := range texts {
			list[i] = text
		}
		return list
	}
	if !isList {
		o := make(object, 0, len(b.names))
		for _, name := range b.names {
			o = append(o, member{name, one(b.values[name])})
		}
		return o
	}
	slices.SortStableFunc(b.names, func(x, y string) int {
		m, _ := strconv.Atoi(x)
		n, _ := strconv.Atoi(y)
		return m - n
	})
	list := []any{}
	for _, name := range b.names {
		if texts, ok := b.values[name].([]string); ok {
			for _, text := range texts {
				list = append(list, text)
			}
			continue
		}
		list = append(list, one(b.values[name]))
	}
	return list
}

// parseCount reads skip or limit.
func parseCount(name string, v any) (int, error) {
	text := fmt.Sprint(v)
	if number, ok := v.(float64); ok {
		text = strconv.FormatFloat(number, 'f', -1, 64)
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return 0, invalid("filter.%s must be an integer that is not negative, not %s", name, shown(v))
	}
	return int(n), nil
}

// shown returns a value for an error message.
func shown(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(plain(v)) != nil {
		return "this value"
	}
	text := strings.TrimSpace(b.String())
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}
