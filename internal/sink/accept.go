package sink

import (
	"path"
	"time"
)

// now returns Unix nanoseconds.
func (s *Server) now() int64 { return s.cfg.Clock.Now().UnixNano() }

// An accepted is a message that was accepted by SMTP or HTTP.
type accepted struct {
	event, id  []byte   // X-Fanfare-Event and the Message-ID or Webhook-Id
	recipients [][]byte // of one message
	size       int
}

// accept counts a message and returns its number, and lines with the lines for the record
// appended.
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
	fits, _ := path.Match(s.cfg.RecordOnly, string(recipient)) // New checked the pattern
	return fits
}

// overRate reports whether another message now would exceed Config.Above, and counts the
// message if it does not.
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

// showMessage passes a message to the samples and to Config.OnMessage. It calls plain only
// if one of them needs the body.
func (s *Server) showMessage(from string, recipients [][]byte, plain func() []byte) {
	keepSample := !s.samples.full.Load()
	if !keepSample && s.cfg.OnMessage == nil {
		return
	}
	to := make([]string, len(recipients))
	for i, r := range recipients {
		to[i] = string(r)
	}
	body := plain()
	if keepSample {
		s.samples.add(from, to, body)
	}
	if s.cfg.OnMessage != nil {
		s.cfg.OnMessage(from, to, body)
	}
}

// A slidingWindow allows a number of messages in any one second, like a provider that
// counts over a sliding second. It is not safe for concurrent use.
type slidingWindow struct {
	taken []int64 // when the last ones were accepted, in nanoseconds: a ring buffer
	next  int     // index of the oldest
}

func newWindow(perSecond int) *slidingWindow { return &slidingWindow{taken: make([]int64, perSecond)} }

// take counts a message at this time and returns false if the second before it is full. A
// refused message does not count.
func (w *slidingWindow) take(now int64) bool {
	if oldest := w.taken[w.next]; oldest != 0 && now-oldest < int64(time.Second) {
		return false
	}
	w.taken[w.next] = now
	w.next = (w.next + 1) % len(w.taken)
	return true
}
