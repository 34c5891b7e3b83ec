package limit

import "testing"

// answer replies to all messages that may be active, round by round.
func answer(w *Window, rounds int, good func(i int) bool) {
	for range rounds {
		size := w.Size()
		w.HasCapacity(size) // somebody wanted more
		for i := range size {
			w.Answered(good(i), size-i-1)
		}
	}
}

func always(good bool) func(int) bool { return func(int) bool { return good } }

func TestWindowGrowsFastUpToItsBound(t *testing.T) {
	w := NewWindow(4, 50)
	answer(&w, 4, always(true))
	if w.Size() != 50 {
		t.Errorf("after four good rounds %d may be under way, want 50", w.Size())
	}
}

func TestSingleErrorDoesNotNarrowTheWindow(t *testing.T) {
	for size := 1; size <= 64; size *= 2 {
		w := NewWindow(size, size)
		answer(&w, 1, func(i int) bool { return i > 0 })
		if w.Size() != size {
			t.Errorf("one bad answer took a window of %d to %d", size, w.Size())
		}
	}
}

func TestCommonFailureHalvesTheWindowOnce(t *testing.T) {
	w := NewWindow(40, 40)
	for i := range 40 {
		w.Answered(false, 39-i)
	}
	if w.Size() >= 40 || w.Size() < 10 {
		t.Errorf("40 failures at once took the window to %d, want 20 or 10", w.Size())
	}
	answer(&w, 20, always(false))
	if w.Size() != 1 {
		t.Errorf("with nothing but failures %d may be under way, want one", w.Size())
	}
	answer(&w, 8, always(true))
	if w.Size() < 5 || w.Size() > 10 {
		t.Errorf("after eight good rounds %d may be under way: it grows by one a round", w.Size())
	}
}

func TestUnusedWindowDoesNotGrow(t *testing.T) {
	w := NewWindow(4, 50)
	for range 1000 {
		w.Answered(true, 0)
	}
	if w.Size() != 4 {
		t.Errorf("one at a time took the window to %d", w.Size())
	}
}

// A peer with capacity for 20 messages refuses further ones: the window settles around 20.
func TestWindowFindsTheCapacityOfAPeer(t *testing.T) {
	w := NewWindow(4, 1000)
	total, refused := 0, 0
	for range 400 {
		size := w.Size()
		w.HasCapacity(size)
		for i := range size {
			total++
			good := i < 20
			if !good {
				refused++
			}
			w.Answered(good, size-i-1)
		}
	}
	if w.Size() < 10 || w.Size() > 26 {
		t.Errorf("the window is %d, the peer takes 20", w.Size())
	}
	if share := float64(refused) / float64(total); share > 0.10 {
		t.Errorf("%.1f %% were refused on the way", share*100)
	}
}
