package condition

// whyEverywhere tells a person why no index leads to a plan's rows: the first of
// its tests that has a name for it.
func (p *plan) whyEverywhere() string {
	for _, one := range p.tests() {
		if why := whyOf(one); why != "" {
			return why
		}
	}
	return "no part of it is a comparison that an index answers"
}

// whyOf is why a test leads to no index, "" where that is not known of it.
func whyOf(t test) string {
	switch t := t.(type) {
	case literalTest:
		return "a constant leads to no index"
	case anyOf:
		for _, one := range t {
			if why := whyOf(one); why != "" {
				return "one side of an || leads to no index: " + why
			}
		}
	case allOf:
		for _, one := range t {
			if why := whyOf(one); why != "" {
				return why
			}
		}
	case negation:
		return "a negation leads to no index"
	case choice:
		return "a choice (a ? b : c) leads to no index"
	case holds:
		return "a field that is true leads to no index; == true does where a rule compares it with a param"
	case hasField:
		return "has() leads to no index"
	case *equality:
		if t.negate {
			return "!= leads to no index"
		}
		return "an index answers == between a field and a value only"
	case *ordering, *numberOrdering:
		return "an index answers <, <=, > and >= between a field and a number only"
	case *membership:
		return "in a list of more than 16 numbers leads to no index"
	case *textTest, *foldedTest:
		return "an empty text, which every text contains, leads to no index"
	case *withinTest:
		return "geo.within leads to an index where one place is the event's, and the other a place of the subscription"
	case *crossingTest:
		return "a crossing leads to an index where the level is a number of the subscription"
	case *sharing:
		return "exists() leads to an index where a text is sought"
	case *regexTest:
		return "a regular expression leads to no index"
	case program:
		return "what cel-go evaluates (arithmetic, conversions, most macros) leads to no index"
	}
	return ""
}
