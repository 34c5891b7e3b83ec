// Package link exchanges frames between the node that leads and another node, over a connection that both have
// authenticated. Delivery and matching on other nodes use it; each defines its own kinds of frames.
//
//	link.go      sending and receiving, and detecting that the other side is gone
//	frame.go     frames, and the values in their payloads
//	requests.go  requests that wait for their replies
package link

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pingEvery is the interval at which each side shows that it is alive.
	pingEvery = time.Second
	// Silence is how long a side may be silent.
	Silence = 4 * time.Second
	// maxPending is the number of bytes that wait to be written before senders wait.
	maxPending = 4 << 20
	// mostPending is the number of bytes that may wait to be written.
	mostPending = 256 << 20
	// keepPending is the size up to which a buffer is kept.
	keepPending = 1 << 20
	readBuffer  = 128 << 10
)

// A Link is one side of a connection between the leader and a node.
type Link struct {
	conn    net.Conn
	silence time.Duration
	heard   atomic.Int64 // when bytes were last received, since began
	began   time.Time

	ctx context.Context // ends with the link
	end context.CancelCauseFunc

	mu       sync.Mutex
	pending  []byte
	wake     chan struct{} // receives a token when there are pending bytes
	capacity *sync.Cond    // pending was taken, or the link ended
}

// New returns a link over a connection. It ends with ctx, and after silence, for which 0 means Silence.
func New(ctx context.Context, conn net.Conn, silence time.Duration) *Link {
	if silence == 0 {
		silence = Silence
	}
	l := &Link{conn: conn, silence: silence, began: time.Now(), wake: make(chan struct{}, 1)}
	l.capacity = sync.NewCond(&l.mu)
	l.ctx, l.end = context.WithCancelCause(ctx)
	return l
}

// Run exchanges frames until the link ends, and returns why. handle must not block.
func (l *Link) Run(handle func(Frame) error) error {
	stop := context.AfterFunc(l.ctx, l.close)
	var running sync.WaitGroup
	running.Go(l.write)
	running.Go(l.watch)
	in := bufio.NewReaderSize((*hearing)(l), readBuffer)
	for l.ctx.Err() == nil {
		f, err := ReadFrame(in)
		if err == nil && f.Kind != Ping {
			err = handle(f)
		}
		if err != nil {
			l.end(fmt.Errorf("the link ended: %w", err))
		}
	}
	stop()
	l.close()
	running.Wait()
	return context.Cause(l.ctx)
}

// close ends the reads and writes of the connection, and wakes senders that wait.
func (l *Link) close() {
	_ = l.conn.Close() // an error has no effect
	l.mu.Lock()
	defer l.mu.Unlock()
	l.capacity.Broadcast()
}

// Context returns a context that ends with the link; its cause is the reason.
func (l *Link) Context() context.Context { return l.ctx }

// Silence returns how long the other side may be silent.
func (l *Link) Silence() time.Duration { return l.silence }

// End ends the link for a reason.
func (l *Link) End(why error) { l.end(why) }

// hearing reads from the connection of a Link and records when bytes arrive, so that a long frame does not count as silence.
type hearing Link

func (h *hearing) Read(p []byte) (int, error) {
	n, err := h.conn.Read(p)
	if n > 0 {
		h.heard.Store(int64(time.Since(h.began)))
	}
	return n, err
}

// Send sends a frame. It waits while too many bytes are pending, and does nothing after the end of the link.
func (l *Link) Send(k byte, stream uint32, payload ...[]byte) {
	l.mu.Lock()
	for len(l.pending) > maxPending && l.ctx.Err() == nil {
		l.capacity.Wait()
	}
	l.pending = AppendFrame(l.pending, k, stream, payload...)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// SendNow sends a frame without waiting. It ends the link if too many bytes are pending.
func (l *Link) SendNow(k byte, stream uint32, payload ...[]byte) {
	l.mu.Lock()
	l.pending = AppendFrame(l.pending, k, stream, payload...)
	tooMany := len(l.pending) > mostPending
	l.mu.Unlock()
	if tooMany {
		l.end(errSlow)
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write writes the pending bytes: all frames that were sent in the meantime are written together. Before it takes them, it
// lets the goroutines run that are ready: a commit or a read wakes many at once, and each of them is about to send a frame.
// A write costs more than what they do.
func (l *Link) write() {
	var out []byte
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		runtime.Gosched()
		l.mu.Lock()
		out, l.pending = l.pending, out[:0]
		l.mu.Unlock()
		l.capacity.Broadcast()
		if len(out) == 0 { // the last write took the frame of this token, too
			continue
		}
		if _, err := l.conn.Write(out); err != nil {
			l.end(fmt.Errorf("the link ended: %w", err))
			return
		}
		if cap(out) > keepPending {
			out = nil
		}
	}
}

var errSlow = errors.New("the other node reads too slowly")

var errSilent = errors.New("nothing was received from the other node for too long")

// watch sends a ping every second, and ends the link after a silence.
func (l *Link) watch() {
	ticker := time.NewTicker(min(pingEvery, l.silence/4))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-l.ctx.Done():
			return
		}
		if time.Since(l.began)-time.Duration(l.heard.Load()) > l.silence {
			l.end(errSilent)
			return
		}
		l.ping()
	}
}

// ping sends a ping, unless other frames are pending.
func (l *Link) ping() {
	l.mu.Lock()
	if len(l.pending) == 0 {
		l.pending = AppendFrame(l.pending, Ping, 0)
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}
