package evaluator

// A crossing is the way in which a value passes a level.
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

// measure returns the error of what cannot be compared with a level.
func measure(v value) (problem value, ok bool) {
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

// passed decides a crossing of the value now, the level, and the value of the
// event before, which is an error where there is none.
func (c crossing) passed(now, level, before value) value {
	for _, v := range [...]value{now, level} {
		if v.kind == kindError {
			return v
		}
	}
	for _, v := range [...]value{now, level} {
		if problem, ok := measure(v); !ok {
			return problem
		}
	}
	if before.kind == kindUndecided {
		return before
	}
	if _, ok := measure(before); !ok {
		return falseValue
	}
	was, _ := compareNumbers(before, level)
	is, _ := compareNumbers(now, level)
	up, down := was < 0 && is >= 0, was > 0 && is <= 0
	return boolValue(up && c != crossDown || down && c != crossUp)
}
