package limit

// A Window is the number of messages that may be active at once, learned from replies by
// additive increase and multiplicative decrease (Chiu and Jain 1989). It evaluates rounds
// of about as many replies as messages may be active. Two bad replies that are a tenth of a
// round halve the window. A round without a bad reply widens it: it doubles until the first
// halving, and grows by one afterwards.
type Window struct {
	most   int // maximum; 0: none
	size   int
	halved bool // was halved: it grows by one from then on

	accepted, refused int  // replies of this round
	used              bool // it was fully used in this round
	stale             int  // replies to messages from before the last halving, which are ignored
}

// NewWindow returns a window of size first and of maximum most.
func NewWindow(first, most int) Window {
	w := Window{most: most, size: max(1, first)}
	w.Bound(most)
	return w
}

// Bound changes the maximum; 0 is none.
func (w *Window) Bound(most int) {
	w.most = most
	if most > 0 {
		w.size = min(w.size, most)
	}
}

// Size returns how many messages may be active.
func (w *Window) Size() int { return w.size }

// NarrowedBelow reports whether replies have made it narrower than a size.
func (w *Window) NarrowedBelow(than int) bool { return w.halved && w.size < than }

// HasCapacity reports whether another message may become active.
func (w *Window) HasCapacity(underway int) bool {
	if underway < w.size {
		return true
	}
	w.used = true
	return false
}

// Answered counts a reply; underway is the number of messages without one. It reports
// whether the window became wider.
func (w *Window) Answered(good bool, underway int) (wider bool) {
	if w.stale > 0 {
		w.stale--
		return false
	}
	if good {
		w.accepted++
	} else {
		w.refused++
	}
	round := w.accepted + w.refused
	if w.refused >= 2 && w.refused*10 >= max(round, w.size) {
		w.size, w.halved = max(1, w.size/2), true
		w.stale = underway
		w.newRound()
		return false
	}
	if round < w.size {
		return false
	}
	before := w.size
	if w.refused == 0 && w.used {
		if w.halved {
			w.size++
		} else {
			w.size *= 2
		}
		w.Bound(w.most)
	}
	if w.refused < 2 || round >= 10*w.refused {
		w.newRound()
	}
	return w.size > before
}

// Shrink narrows the window by a tenth.
func (w *Window) Shrink() {
	w.size, w.halved = max(1, w.size-max(1, w.size/10)), true
	w.newRound()
}

func (w *Window) newRound() { w.accepted, w.refused, w.used = 0, 0, false }
