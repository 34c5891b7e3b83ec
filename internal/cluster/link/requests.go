package link

import (
	"context"
	"errors"
	"sync"
)

// ErrEnded is the error of a request whose link ended before the reply.
var ErrEnded = errors.New("the link to the node has ended")

// Requests are the requests over a link that wait for their replies. The stream of a frame is the number of its request. The
// zero value has none. It is safe for concurrent use.
type Requests struct {
	mu      sync.Mutex
	last    uint32
	waiting map[uint32]chan []byte
	late    bool
}

// Ask sends a request and waits for its reply, until the link or ctx ends.
func (r *Requests) Ask(ctx context.Context, l *Link, kind byte, payload ...[]byte) ([]byte, error) {
	number, reply := r.begin()
	l.Send(kind, number, payload...)
	select {
	case text := <-reply:
		return text, nil
	case <-l.ctx.Done():
		r.giveUp(number, false)
		return nil, ErrEnded
	case <-ctx.Done():
		r.giveUp(number, true)
		return nil, ctx.Err()
	}
}

func (r *Requests) begin() (number uint32, reply chan []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[uint32]chan []byte{}
	}
	r.last++
	reply = make(chan []byte, 1)
	r.waiting[r.last] = reply
	return r.last, reply
}

// giveUp forgets a request. late: its reply did not come in time.
func (r *Requests) giveUp(number uint32, late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[number] != nil { // else the reply has just arrived, and there may be no other one
		delete(r.waiting, number)
		r.late = r.late || late
	}
}

// Reply passes a reply to the request that waits for it, if one does.
func (r *Requests) Reply(f Frame) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.late = false
	if reply := r.waiting[f.Stream]; reply != nil {
		delete(r.waiting, f.Stream)
		reply <- f.Payload
	}
}

// Waiting returns the number of requests that wait for their replies.
func (r *Requests) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// Late reports whether a request had no reply in time, and no reply has come since then.
func (r *Requests) Late() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.late
}
