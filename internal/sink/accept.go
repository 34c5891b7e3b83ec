package sink

import (
	"path"
	"time"
)

// now is in nanoseconds.
func (s *Server) now() int64 { return s.cfg.Clock.Now().UnixNano() }

// An arrival is a message that is accepted, however it came.
type accepted struct {
	event, id  []byte   // what it tells of, and its own name
	recipients [][]byte // of one message
	size       int
}

// accept counts a message in all the books and returns its number, and lines with
// those for the recorder.
func (s *Server) accept(m accepted, lines []byte) (n int64, _ []byte) {
	now := s.now()
	fresh := int64(0)
	for _, to := range m.recipients {
		if s.deliveries.add(deliveryHash(m.event, to)) {
			fresh++
		}
		if s.recorder != nil && s.isRecorded(to) {
			lines = appendRecord(lines, now, m.event, to, m.id)
		}
		if len(s.hosts.rules) > 0 {
			s.hosts.count(hostOf(to), now)
		}
	}
	t := &s.counters
	n = t.messages.Add(1)
	t.accepted.Add(int64(len(m.recipients)))
	t.unique.Add(fresh)
	t.bytes.Add(int64(m.size))
	if n == 1 {
		t.first.Store(now)
	}
	t.last.Store(now)
	t.timeline.add(now)
	return n, lines
}

func (s *Server) isRecorded(recipient []byte) bool {
	if s.cfg.RecordOnly == "" {
		return true
	}
	fits, _ := path.Match(s.cfg.RecordOnly, string(recipient)) // the pattern was checked
	return fits
}

// overRate reports whether one more message at this time is more than may come in a
// second, and counts it as taken where it is not.
func (s *Server) overRate() bool {
	if s.rateWindow == nil {
		return false
	}
	s.rateMu.Lock()
	defer s.rateMu.Unlock()
	if s.rateWindow.take(s.now()) {
		return false
	}
	s.counters.rejected4xx.Add(1)
	s.counters.rejectedAbove.Add(1)
	return true
}

// showMessage shows a message to who wants to see it whole. plain is called only where
// somebody does.
func (s *Server) showMessage(from string, recipients [][]byte, plain func() []byte) {
	album := !s.samples.full.Load()
	if !album && s.cfg.OnMessage == nil {
		return
	}
	to := make([]string, len(recipients))
	for i, r := range recipients {
		to[i] = string(r)
	}
	body := plain()
	if album {
		s.samples.add(from, to, body)
	}
	if s.cfg.OnMessage != nil {
		s.cfg.OnMessage(from, to, body)
	}
}

// A window allows so many messages in any one second: a provider that counts by
// a sliding second. It is not safe for concurrent use.
type slidingWindow struct {
	taken []int64 // when the last ones were taken, in nanoseconds: a ring
	next  int     // the oldest of them
}

func newWindow(perSecond int) *slidingWindow { return &slidingWindow{taken: make([]int64, perSecond)} }

// take allows a message at that time, or refuses it because the second before it
// is full. What is refused does not count.
func (w *slidingWindow) take(now int64) bool {
	if oldest := w.taken[w.next]; oldest != 0 && now-oldest < int64(time.Second) {
		return false
	}
	w.taken[w.next] = now
	w.next = (w.next + 1) % len(w.taken)
	return true
}
