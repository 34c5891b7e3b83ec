package sink

import (
	"sync"
	"sync/atomic"
)

// A Message is a message that was kept as a whole.
type Message struct {
	From string   `json:"from"`
	To   []string `json:"to"`
	Body []byte   `json:"body"` // header and body, without dot stuffing
}

// samples keeps the first and the last messages.
type samples struct {
	first, last int
	full        atomic.Bool // no more messages are kept

	mu    sync.Mutex
	count int // messages added to tail
	head  []Message
	tail  []Message // a ring buffer; once full, the oldest is at count % last
}

func newSamples(first, last int) *samples {
	a := &samples{first: first, last: last}
	a.full.Store(first == 0 && last == 0)
	return a
}

func (a *samples) add(from string, to []string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.head) < a.first {
		a.head = append(a.head, Message{from, to, append([]byte(nil), body...)})
		a.full.Store(len(a.head) == a.first && a.last == 0)
		return
	}
	if a.last == 0 {
		return
	}
	if len(a.tail) < a.last {
		a.tail = append(a.tail, Message{from, to, append([]byte(nil), body...)})
	} else {
		m := &a.tail[a.count%a.last]
		m.From, m.To, m.Body = from, to, append(m.Body[:0], body...)
	}
	a.count++
}

// messages returns copies, the oldest first.
func (a *samples) messages() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := append([]Message(nil), a.head...)
	for i := range a.tail {
		if len(a.tail) == a.last {
			i = (a.count + i) % a.last
		}
		m := a.tail[i]
		m.Body = append([]byte(nil), m.Body...)
		all = append(all, m)
	}
	return all
}
