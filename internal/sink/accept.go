package sink

import (
	"path"
	"time"
)

// now is in nanoseconds.
func (s *Server) now() int64 { return s.cfg.Clock.Now().UnixNano() }

// An arrival is a message that is accepted, however it came.
type arrival struct {
	event, id  []byte   // what it tells of, and its own name
	recipients [][]byte // of one message
	size       int
}

// take counts a message in all the books and returns its number, and lines with
// those for the recorder.
func (s *Server) take(m arrival, lines []byte) (n int64, _ []byte) {
	now := s.now()
	fresh := int64(0)
	for _, to := range m.recipients {
		if s.census.add(pair(m.event, to)) {
			fresh++
		}
		if s.recorder != nil && s.records(to) {
			lines = appendRecord(lines, now, m.event, to, m.id)
		}
		if len(s.hosts.rules) > 0 {
			s.hosts.count(hostOf(to), now)
		}
	}
	t := &s.tally
	n = t.messages.Add(1)
	t.accepted.Add(int64(len(m.recipients)))
	t.unique.Add(fresh)
	t.bytes.Add(int64(m.size))
	if n == 1 {
		t.first.Store(now)
	}
	t.last.Store(now)
	t.over.add(now)
	return n, lines
}

func (s *Server) records(recipient []byte) bool {
	if s.cfg.RecordOnly == "" {
		return true
	}
	fits, _ := path.Match(s.cfg.RecordOnly, string(recipient)) // the pattern was checked
	return fits
}

// full reports whether one more message at this time is more than may come in a
// second, and counts it as taken where it is not.
func (s *Server) full() bool {
	if s.above == nil {
		return false
	}
	s.aboveMu.Lock()
	defer s.aboveMu.Unlock()
	if s.above.take(s.now()) {
		return false
	}
	s.tally.rejected4xx.Add(1)
	s.tally.rejectedAbove.Add(1)
	return true
}

// keep shows a message to who wants to see it whole. plain is called only where
// somebody does.
func (s *Server) keep(from string, recipients [][]byte, plain func() []byte) {
	album := !s.album.full.Load()
	if !album && s.cfg.OnMessage == nil {
		return
	}
	to := make([]string, len(recipients))
	for i, r := range recipients {
		to[i] = string(r)
	}
	body := plain()
	if album {
		s.album.add(from, to, body)
	}
	if s.cfg.OnMessage != nil {
		s.cfg.OnMessage(from, to, body)
	}
}

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
