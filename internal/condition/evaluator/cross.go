package evaluator

// A crossing is the direction in which a value crosses a level.
type crossing uint8

const (
	crossEither crossing = iota
	crossUp
	crossDown
)

var crossings = map[string]crossing{"crosses": crossEither, "crosses_above": crossUp, "crosses_below": crossDown}

func (c crossing) String() string {
	return [...]string{crossEither: "crosses", crossUp: "crosses_above", crossDown: "crosses_below"}[c]
}

// checkComparable returns the error of a value that cannot be compared with a level.
func checkComparable(v value) (problem value, ok bool) {
	switch {
	case !v.decided():
		return v, false
	case !v.isNumber():
		return errorValue(noOverload), false
	case isNaN(v):
		return errorValue("NaN is neither above nor below a level"), false
	}
	return v, true
}

// happened reports whether the value crossed the level since the previous event. before is an
// error if there is no previous event.
func (c crossing) happened(now, level, before value) value {
	for _, v := range [...]value{now, level} {
		if v.kind == kindError {
			return v
		}
	}
	for _, v := range [...]value{now, level} {
		if problem, ok := checkComparable(v); !ok {
			return problem
		}
	}
	if before.kind == kindUndecided {
		return before
	}
	if _, ok := checkComparable(before); !ok {
		return falseValue
	}
	was, _ := compareNumbers(before, level)
	is, _ := compareNumbers(now, level)
	up, down := was < 0 && is >= 0, was > 0 && is <= 0
	return boolValue(up && c != crossDown || down && c != crossUp)
}
