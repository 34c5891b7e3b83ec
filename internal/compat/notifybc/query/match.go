package query

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxSteps is the budget of a query over all its records. A step is a test, a value that a path leads to, or 64
// bytes of a text.
const MaxSteps = 50_000_000

// ErrBudget is the error of a query that exceeds its budget.
var ErrBudget = errors.New("the query takes too long: restrict it by id, serviceName, userChannelId, state or created")

// An evaluation is the working memory of a query.
type evaluation struct {
	steps int
	found []any
}

// spend takes steps from the budget; it returns false if the budget is exceeded.
func (e *evaluation) spend(steps int) bool {
	e.steps += steps
	return e.steps <= MaxSteps
}

// Match reports whether a record satisfies the where. Beyond the budget, it is false for every record.
func (q *Query) Match(record map[string]any) bool {
	if q.where == nil {
		return true
	}
	return q.evaluation.spend(1) && q.where.match(&q.evaluation, record) && q.evaluation.steps <= MaxSteps
}

// Err returns ErrBudget if a call of Match has exceeded the budget.
func (q *Query) Err() error {
	if q.evaluation.steps > MaxSteps {
		return ErrBudget
	}
	return nil
}

func (c allOf) match(e *evaluation, record map[string]any) bool {
	for _, one := range c {
		if !one.match(e, record) {
			return false
		}
	}
	return true
}

func (c anyOf) match(e *evaluation, record map[string]any) bool {
	for _, one := range c {
		if one.match(e, record) {
			return true
		}
	}
	return false
}

func (c noneOf) match(e *evaluation, record map[string]any) bool {
	return !anyOf(c).match(e, record)
}

func (c *fieldTest) match(e *evaluation, record map[string]any) bool {
	if !e.spend(1) {
		return false
	}
	e.found = appendAt(e, e.found[:0], record, c.path)
	return c.test.match(e, e.found)
}

// missing stands for a field that a path does not find.
type missing struct{}

// appendAt appends the values at a path: a path goes through the elements of lists, and a list at its
// end counts as a whole and as each of its elements.
func appendAt(e *evaluation, found []any, v any, path []string) []any {
	if !e.spend(1) {
		return found
	}
	if len(path) == 0 {
		found = append(found, v)
		if list, ok := v.([]any); ok && e.spend(len(list)) {
			found = append(found, list...)
		}
		return found
	}
	switch x := v.(type) {
	case map[string]any:
		member, ok := x[path[0]]
		if !ok {
			return append(found, missing{})
		}
		return appendAt(e, found, member, path[1:])
	case []any:
		if at, err := strconv.ParseUint(path[0], 10, 31); err == nil {
			if at < uint64(len(x)) {
				return appendAt(e, found, x[at], path[1:])
			}
			return append(found, missing{})
		}
		for _, one := range x {
			if _, ok := one.(map[string]any); ok {
				found = appendAt(e, found, one, path)
			}
		}
		return found
	}
	return append(found, missing{})
}

func (t equalTest) match(e *evaluation, found []any) bool {
	for _, one := range found {
		if same(e, one, t.value) {
			return true
		}
	}
	return false
}

func (t inTest) match(e *evaluation, found []any) bool {
	for _, value := range t.values {
		if (equalTest{value}).match(e, found) {
			return true
		}
	}
	return false
}

func (t orderTest) match(e *evaluation, found []any) bool {
	for _, one := range found {
		if !e.spend(1) {
			return false
		}
		order, ok := compare(one, t.value)
		if !ok {
			continue
		}
		switch t.operator {
		case "$gt":
			ok = order > 0
		case "$gte":
			ok = order >= 0
		case "$lt":
			ok = order < 0
		default:
			ok = order <= 0
		}
		if ok {
			return true
		}
	}
	return false
}

func (t existsTest) match(_ *evaluation, found []any) bool {
	exists := false
	for _, one := range found {
		if _, isMissing := one.(missing); !isMissing {
			exists = true
		}
	}
	return exists == bool(t)
}

func (t patternTest) match(e *evaluation, found []any) bool {
	for _, one := range found {
		if text, ok := one.(string); ok && e.spend(1+len(text)/8) && t.MatchString(text) {
			return true
		}
	}
	return false
}

func (t notTest) match(e *evaluation, found []any) bool { return !t.test.match(e, found) }

func (t everyTest) match(e *evaluation, found []any) bool {
	for _, one := range t {
		if !one.match(e, found) {
			return false
		}
	}
	return true
}

// same compares a value of a record with one of a query. A missing field is null.
func same(e *evaluation, v, with any) bool {
	if !e.spend(1) {
		return false
	}
	switch y := with.(type) {
	case nil:
		_, isMissing := v.(missing)
		return v == nil || isMissing
	case time.Time:
		at, ok := toDate(v)
		return ok && at.Equal(y)
	case []any:
		x, ok := v.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !same(e, x[i], y[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		x, ok := v.(map[string]any)
		if !ok || len(x) != len(y) {
			return false
		}
		for name, value := range y {
			if other, known := x[name]; !known || !same(e, other, value) {
				return false
			}
		}
		return true
	}
	switch v.(type) {
	case string, bool, float64:
		return v == with
	}
	return false
}

// compare orders a value of a record and one of a query; only values of the same type have an order.
func compare(v, with any) (order int, ok bool) {
	switch y := with.(type) {
	case nil:
		_, isMissing := v.(missing)
		return 0, v == nil || isMissing
	case string:
		x, ok := v.(string)
		return strings.Compare(x, y), ok
	case float64:
		x, ok := v.(float64)
		return compareFloats(x, y), ok
	case bool:
		x, ok := v.(bool)
		return compareFloats(float64(numberOf(x)), float64(numberOf(y))), ok
	case time.Time:
		x, ok := toDate(v)
		return x.Compare(y), ok && v != nil
	}
	return 0, false
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

func numberOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// match reports whether one of the words and all phrases are in the texts of a record, and no excluded
// word is.
func (t *textTest) match(e *evaluation, record map[string]any) bool {
	words, phrases := map[string]bool{}, make([]bool, len(t.phrases))
	var visit func(v any) bool
	visit = func(v any) bool {
		switch x := v.(type) {
		case string:
			if !e.spend(1 + len(x)/4) {
				return false
			}
			folded := foldText(x)
			for i, phrase := range t.phrases {
				phrases[i] = phrases[i] || strings.Contains(folded, phrase)
			}
			for _, word := range wordsOf(folded) {
				words[word] = true
			}
		case []any:
			for _, one := range x {
				if !visit(one) {
					return false
				}
			}
		case map[string]any:
			for _, one := range x {
				if !visit(one) {
					return false
				}
			}
		}
		return true
	}
	if !visit(record) {
		return false
	}
	for _, found := range phrases {
		if !found {
			return false
		}
	}
	for _, word := range t.without {
		if words[word] {
			return false
		}
	}
	for _, word := range t.words {
		if words[word] {
			return true
		}
	}
	return false
}

// foldText returns a text in lower case without accents.
func foldText(text string) string {
	text = strings.ToLower(text)
	for i := range len(text) {
		if text[i] >= 0x80 {
			return strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Mn, r) {
					return -1
				}
				return r
			}, norm.NFD.String(text))
		}
	}
	return text
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
}
