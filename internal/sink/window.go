package sink

import "time"

// A window allows so many messages in any one second: a provider that counts by
// a sliding second. It is not safe for concurrent use.
type window struct {
	taken []int64 // when the last ones were taken, in nanoseconds: a ring
	next  int     // the oldest of them
}

func newWindow(perSecond int) *window { return &window{taken: make([]int64, perSecond)} }

// take allows a message at that time, or refuses it because the second before it
// is full. What is refused does not count.
func (w *window) take(now int64) bool {
	if oldest := w.taken[w.next]; oldest != 0 && now-oldest < int64(time.Second) {
		return false
	}
	w.taken[w.next] = now
	w.next = (w.next + 1) % len(w.taken)
	return true
}
