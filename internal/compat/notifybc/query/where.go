package query

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a regular expression.
const (
	maxPatternBytes = 1 << 10
	maxPatternParts = 1000
)

// A condition is a part of a where.
type condition interface {
	match(e *evaluation, record map[string]any) bool
}

type (
	allOf  []condition
	anyOf  []condition
	noneOf []condition
	// A fieldTest tests the values at a path.
	fieldTest struct {
		path []string
		test test
	}
	textTest struct{ words, phrases, without []string }
)

// A test tests the values that a path leads to.
type test interface {
	match(e *evaluation, found []any) bool
}

type (
	equalTest struct{ value any }
	inTest    struct{ values []any }
	orderTest struct {
		operator string
		value    any
	}
	existsTest  bool
	patternTest struct{ *regexp.Regexp }
	notTest     struct{ test }
	everyTest   []test
)

// parseWhere compiles a where.
func parseWhere(v any) (condition, error) {
	o, ok := v.(object)
	if !ok {
		return nil, invalid("where must be an object, not %s", shown(v))
	}
	all := allOf{}
	for _, m := range o {
		one, err := parseMember(m)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func parseMember(m member) (condition, error) {
	switch m.name {
	case "$and", "$or", "$nor":
		list, ok := m.value.([]any)
		if !ok || len(list) == 0 {
			return nil, invalid("%s requires a list of conditions, not %s", m.name, shown(m.value))
		}
		conditions := make([]condition, len(list))
		for i, one := range list {
			var err error
			if conditions[i], err = parseWhere(one); err != nil {
				return nil, err
			}
		}
		switch m.name {
		case "$and":
			return allOf(conditions), nil
		case "$or":
			return anyOf(conditions), nil
		}
		return noneOf(conditions), nil
	case "$text":
		return parseTextSearch(m.value)
	}
	if strings.HasPrefix(m.name, "$") {
		return nil, invalid("the operator %s is not supported; at the top of where, use $and, $or, $nor, $text or the name of a field", m.name)
	}
	path := strings.Split(m.name, ".")
	if path[0] == "_id" {
		path[0] = "id"
	}
	if slices.Contains(path, "") {
		return nil, invalid("%q is not the path of a field", m.name)
	}
	t, err := parseTest(fieldType(path), m.name, m.value)
	return &fieldTest{path, t}, err
}

// parseTest compiles the value of a field: operators, or the value itself.
func parseTest(kind castType, name string, v any) (test, error) {
	o, ok := v.(object)
	if !ok || len(o) == 0 || !strings.HasPrefix(o[0].name, "$") {
		value, err := kind.cast(name, v)
		return equalTest{value}, err
	}
	tests := everyTest{}
	for _, m := range o {
		t, err := parseOperator(kind, name, m, o)
		if err != nil {
			return nil, err
		}
		if t != nil {
			tests = append(tests, t)
		}
	}
	if len(tests) == 1 {
		return tests[0], nil
	}
	return tests, nil
}

func parseOperator(kind castType, name string, m member, all object) (test, error) {
	switch m.name {
	case "$eq", "$ne", "$gt", "$gte", "$lt", "$lte":
		value, err := kind.cast(name, m.value)
		switch {
		case err != nil:
			return nil, err
		case m.name == "$eq":
			return equalTest{value}, nil
		case m.name == "$ne":
			return notTest{equalTest{value}}, nil
		}
		return orderTest{m.name, value}, nil
	case "$in", "$nin":
		list, ok := m.value.([]any)
		if !ok {
			if _, isText := m.value.(string); !isText { // mongoose makes a list of a single value
				return nil, invalid("%s of %s requires a list, not %s", m.name, name, shown(m.value))
			}
			list = []any{m.value}
		}
		values := make([]any, len(list))
		for i, one := range list {
			var err error
			if values[i], err = kind.cast(name, one); err != nil {
				return nil, err
			}
		}
		if m.name == "$in" {
			return inTest{values}, nil
		}
		return notTest{inTest{values}}, nil
	case "$exists":
		switch m.value {
		case true, "true", 1.0, "1":
			return existsTest(true), nil
		case false, "false", 0.0, "0":
			return existsTest(false), nil
		}
		return nil, invalid("$exists of %s requires true or false, not %s", name, shown(m.value))
	case "$regex":
		options, _ := all.get("$options")
		return parsePattern(name, m.value, options)
	case "$options":
		if _, ok := all.get("$regex"); !ok {
			return nil, invalid("$options of %s requires $regex", name)
		}
		return nil, nil
	case "$not":
		inner, ok := m.value.(object)
		if !ok || len(inner) == 0 || !strings.HasPrefix(inner[0].name, "$") {
			return nil, invalid("$not of %s requires an object of operators, not %s", name, shown(m.value))
		}
		t, err := parseTest(kind, name, inner)
		return notTest{t}, err
	}
	return nil, invalid("the operator %s of %s is not supported; use $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, $regex or $not", m.name, name)
}

func parsePattern(name string, pattern, options any) (test, error) {
	text, ok := pattern.(string)
	if !ok {
		return nil, invalid("$regex of %s requires a text, not %s", name, shown(pattern))
	}
	flags := ""
	if options != nil {
		if flags, ok = options.(string); !ok || strings.Trim(flags, "ims") != "" {
			return nil, invalid("$options of %s may contain i, m and s, not %s", name, shown(options))
		}
	}
	if len(text) > maxPatternBytes {
		return nil, invalid("$regex of %s has %d bytes; at most %d are allowed", name, len(text), maxPatternBytes)
	}
	if flags != "" {
		text = "(?" + flags + ")" + text
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, invalid("$regex of %s is not supported: %v", name, err)
	}
	if partsOf(parsed) > maxPatternParts {
		return nil, invalid("$regex of %s has more than %d parts after its repetitions are expanded", name, maxPatternParts)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, invalid("$regex of %s is not supported: %v", name, err)
	}
	return patternTest{compiled}, nil
}

// partsOf counts the nodes of a pattern with its repetitions expanded, up to the limit.
func partsOf(r *syntax.Regexp) int {
	size := 1
	for _, sub := range r.Sub {
		size = min(size+partsOf(sub), maxPatternParts+1)
	}
	if r.Op == syntax.OpRepeat {
		size *= max(r.Min, r.Max, 1)
	}
	return min(size, maxPatternParts+1)
}

// parseTextSearch reads {"$search": "words \"a phrase\" -without"}.
func parseTextSearch(v any) (condition, error) {
	o, ok := v.(object)
	if !ok {
		return nil, invalid("$text requires {\"$search\": \"words\"}, not %s", shown(v))
	}
	search, found := "", false
	for _, m := range o {
		switch m.name {
		case "$search":
			if search, found = m.value.(string); !found {
				return nil, invalid("$search requires a text, not %s", shown(m.value))
			}
		case "$language", "$caseSensitive", "$diacriticSensitive":
		default:
			return nil, invalid("the option %s of $text is not supported", m.name)
		}
	}
	if !found {
		return nil, invalid("$text requires {\"$search\": \"words\"}")
	}
	t := &textTest{}
	for i, part := range strings.Split(search, `"`) {
		if i%2 == 1 {
			if phrase := foldText(part); phrase != "" {
				t.phrases = append(t.phrases, phrase)
				t.words = append(t.words, wordsOf(phrase)...)
			}
			continue
		}
		for _, word := range strings.Fields(part) {
			without, isNegated := strings.CutPrefix(word, "-")
			folded := wordsOf(foldText(without))
			if isNegated {
				t.without = append(t.without, folded...)
			} else {
				t.words = append(t.words, folded...)
			}
		}
	}
	return t, nil
}

// A castType is the type of a known field.
type castType uint8

const (
	castNone castType = iota // a field of any type
	castText
	castDate
	castBool
	castNumber
)

// knownTypes are the types of fields to which values are cast.
var knownTypes = map[string]castType{
	"id": castText, "serviceName": castText, "channel": castText, "userChannelId": castText, "userId": castText, "state": castText,
	"unsubscriptionCode": castText, "broadcastPushNotificationFilter": castText, "broadcastPushNotificationSubscriptionFilter": castText,
	"name": castText, "email": castText, "username": castText, "httpHost": castText,
	"created": castDate, "updated": castDate, "invalidBefore": castDate, "validTill": castDate,
	"latestNotificationStarted": castDate, "latestNotificationEnded": castDate, "bounceMessages.date": castDate,
	"isBroadcast": castBool, "skipSubscriptionConfirmationCheck": castBool,
	"hardBounceCount": castNumber, "ttl": castNumber,
}

func fieldType(path []string) castType { return knownTypes[strings.Join(path, ".")] }

// cast returns a value of a where as it is compared: a date as a time.Time, an object without the order of
// its members.
func (kind castType) cast(name string, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	switch kind {
	case castText:
		switch x := v.(type) {
		case string:
			return x, nil
		case float64:
			return strconv.FormatFloat(x, 'f', -1, 64), nil
		case bool:
			return strconv.FormatBool(x), nil
		}
		return nil, invalid("%s must be compared with a text, not %s", name, shown(v))
	case castDate:
		if at, ok := toDate(v); ok {
			return at, nil
		}
		return nil, invalid("%s must be compared with a date such as 2026-01-31T12:00:00Z, not %s", name, shown(v))
	case castBool:
		switch v {
		case true, "true", "1", 1.0, "yes":
			return true, nil
		case false, "false", "0", 0.0, "no":
			return false, nil
		}
		return nil, invalid("%s must be compared with true or false, not %s", name, shown(v))
	case castNumber:
		switch x := v.(type) {
		case float64:
			return x, nil
		case string:
			if number, err := strconv.ParseFloat(x, 64); err == nil {
				return number, nil
			}
		}
		return nil, invalid("%s must be compared with a number, not %s", name, shown(v))
	}
	if o, ok := v.(object); ok {
		for _, m := range o {
			if strings.HasPrefix(m.name, "$") {
				return nil, invalid("%s mixes operators and fields: %s", name, fmt.Sprintf("%.40s", m.name))
			}
		}
	}
	return plain(v), nil
}

// dateLayouts are the forms of a date in a query.
var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "2006-01", "2006"}

// toDate converts a text or milliseconds since 1970 to a time.
func toDate(v any) (time.Time, bool) {
	switch x := v.(type) {
	case time.Time:
		return x, true
	case float64:
		return time.UnixMilli(int64(max(-1e15, min(x, 1e15)))).UTC(), true
	case string:
		for _, layout := range dateLayouts {
			if at, err := time.Parse(layout, x); err == nil {
				return at, true
			}
		}
	}
	return time.Time{}, false
}
