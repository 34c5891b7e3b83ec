package evaluator

// verdicts holds the results of a node that is a boolean as bit sets, bit i for event i: true,
// error and undecided. An event in none of them is false. A nil set is empty. Bits after the last
// event are undefined.
type verdicts struct {
	true_, error_, undecided []uint64
}

// A verdictWriter converts values to verdicts, event by event.
type verdictWriter struct {
	verdicts
	words int
}

func (w *verdictWriter) set(i int, v *value) {
	switch v.kind {
	case kindBool:
		if v.num != 0 {
			w.true_[i>>6] |= 1 << (i & 63)
		}
	case kindUndecided:
		w.setUndecided(i)
	default:
		w.setError(i)
	}
}

func (w *verdictWriter) setError(i int) {
	if w.error_ == nil {
		w.error_ = make([]uint64, w.words)
	}
	w.error_[i>>6] |= 1 << (i & 63)
}

func (w *verdictWriter) setUndecided(i int) {
	if w.undecided == nil {
		w.undecided = make([]uint64, w.words)
	}
	w.undecided[i>>6] |= 1 << (i & 63)
}

func newVerdicts(words int) verdictWriter {
	return verdictWriter{verdicts{true_: make([]uint64, words)}, words}
}

// at returns the result for an event as a value.
func (x *verdicts) at(i int) value {
	word, bit := i>>6, uint64(1)<<(i&63)
	switch {
	case x.true_[word]&bit != 0:
		return trueValue
	case x.error_ != nil && x.error_[word]&bit != 0:
		return errorValue(noReason)
	case x.undecided != nil && x.undecided[word]&bit != 0:
		return undecided(noReason)
	default:
		return falseValue
	}
}

// noReason replaces the reason of an error, which a batch does not keep.
const noReason = "an operand failed"

// sizeBytes returns the memory of the sets.
func (x *verdicts) sizeBytes() int { return 8 * (len(x.true_) + len(x.error_) + len(x.undecided)) }

// union adds the bits of y to x.
func union(x, y []uint64) []uint64 {
	if y == nil {
		return x
	}
	if x == nil {
		return append([]uint64(nil), y...)
	}
	for i, word := range y {
		x[i] |= word
	}
	return x
}

// without removes the bits of y from x.
func without(x, y []uint64) {
	if x == nil || y == nil {
		return
	}
	for i, word := range y {
		x[i] &^= word
	}
}

// word returns a word of a set that may be nil.
func word(x []uint64, i int) uint64 {
	if x == nil {
		return 0
	}
	return x[i]
}

// joinVerdicts joins operands by || if decisive is true, and by && if it is false.
func joinVerdicts(words int, decisive bool, operands []*verdicts) *verdicts {
	decided := make([]uint64, words) // true of ||, false of &&
	joined := &verdicts{}
	for _, x := range operands {
		joined.error_ = union(joined.error_, x.error_)
		joined.undecided = union(joined.undecided, x.undecided)
		if decisive {
			union(decided, x.true_)
			continue
		}
		for i := range decided {
			decided[i] |= ^(x.true_[i] | word(x.error_, i) | word(x.undecided, i))
		}
	}
	without(joined.undecided, decided)
	without(joined.error_, decided)
	without(joined.error_, joined.undecided)
	joined.true_ = decided
	if !decisive {
		for i := range decided {
			decided[i] = ^(decided[i] | word(joined.error_, i) | word(joined.undecided, i))
		}
	}
	return joined
}

// negateVerdicts returns !x.
func negateVerdicts(x *verdicts) *verdicts {
	negated := &verdicts{true_: make([]uint64, len(x.true_)), error_: x.error_, undecided: x.undecided}
	for i := range x.true_ {
		negated.true_[i] = ^(x.true_[i] | word(x.error_, i) | word(x.undecided, i))
	}
	return negated
}

// chooseVerdicts returns condition ? yes : no.
func chooseVerdicts(condition, yes, no *verdicts) *verdicts {
	words := len(condition.true_)
	chosen := newVerdicts(words)
	chosen.error_, chosen.undecided = make([]uint64, words), make([]uint64, words)
	for i := range words {
		isTrue, isError, isUndecided := condition.true_[i], word(condition.error_, i), word(condition.undecided, i)
		isFalse := ^(isTrue | isError | isUndecided)
		chosen.true_[i] = isTrue&yes.true_[i] | isFalse&no.true_[i]
		chosen.error_[i] = isError | isTrue&word(yes.error_, i) | isFalse&word(no.error_, i)
		chosen.undecided[i] = isUndecided | isTrue&word(yes.undecided, i) | isFalse&word(no.undecided, i)
	}
	return &chosen.verdicts
}
