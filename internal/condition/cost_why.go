package condition

// unindexedReason tells a person why no index leads to a plan's rows: the first of
// its tests that has a name for it.
func (p *plan) unindexedReason() string {
	for _, one := range p.predicates() {
		if why := reasonOf(one); why != "" {
			return why
		}
	}
	return "no part of it is a comparison that an index answers"
}

// reasonOf is why a test leads to no index, "" where that is not known of it.
func reasonOf(t Predicate) string {
	switch t := t.(type) {
	case ConstantPredicate:
		return "a constant leads to no index"
	case Or:
		for _, one := range t {
			if why := reasonOf(one); why != "" {
				return "one side of an || leads to no index: " + why
			}
		}
	case And:
		for _, one := range t {
			if why := reasonOf(one); why != "" {
				return why
			}
		}
	case Not:
		return "a negation leads to no index"
	case Conditional:
		return "a choice (a ? b : c) leads to no index"
	case IsTrue:
		return "a field that is true leads to no index; == true does where a rule compares it with a param"
	case HasField:
		return "has() leads to no index"
	case *Equality:
		if t.negate {
			return "!= leads to no index"
		}
		return "an index answers == between a field and a value only"
	case *Ordering, *NumberParamOrdering:
		return "an index answers <, <=, > and >= between a field and a number only"
	case *InConstants:
		return "in a list of more than 16 numbers leads to no index"
	case *TextPredicate, *FoldedTextPredicate:
		return "an empty text, which every text contains, leads to no index"
	case *WithinPredicate:
		return "geo.within leads to an index where one place is the event's, and the other a place of the subscription"
	case *CrossingPredicate:
		return "a crossing leads to an index where the level is a number of the subscription"
	case *existsPredicate:
		return "exists() leads to an index where a text is sought"
	case *RegexPredicate:
		return "a regular expression leads to no index"
	case CELPredicate:
		return "what cel-go evaluates (arithmetic, conversions, most macros) leads to no index"
	}
	return ""
}
