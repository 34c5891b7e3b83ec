package limit

// A Window is how many messages may be under way at once, learnt from their
// answers by additive increase and multiplicative decrease (Chiu and Jain 1989).
// It looks at a round of answers at a time, of about as many as may be under
// way. Two bad ones in a round that are a tenth of it halve the window; a round
// without one widens it, by twice until the first halving and by one after it.
type Window struct {
	most   int // never more; 0: without bound
	size   int
	halved bool // has been halved: from there on it grows by one

	accepted, refused int  // answers of this round
	used              bool // all of it was in use in this round
	stale             int  // answers to what began before the last halving: they say nothing new
}

// NewWindow returns a window that begins with first and never exceeds most.
func NewWindow(first, most int) Window {
	w := Window{most: most, size: max(1, first)}
	w.Bound(most)
	return w
}

// Bound changes how wide the window may ever be; 0 is without bound.
func (w *Window) Bound(most int) {
	w.most = most
	if most > 0 {
		w.size = min(w.size, most)
	}
}

// Size is how many may be under way.
func (w *Window) Size() int { return w.size }

// NarrowedBelow reports whether answers have made it narrower than a size.
func (w *Window) NarrowedBelow(than int) bool { return w.halved && w.size < than }

// Room reports whether one more may begin.
func (w *Window) Room(underway int) bool {
	if underway < w.size {
		return true
	}
	w.used = true
	return false
}

// Answered counts an answer; underway is how many are without one still. It
// reports whether there is more room than before.
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

// Shrink takes a tenth off the window.
func (w *Window) Shrink() {
	w.size, w.halved = max(1, w.size-max(1, w.size/10)), true
	w.newRound()
}

func (w *Window) newRound() { w.accepted, w.refused, w.used = 0, 0, false }
