package mailbox

import (
	"context"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
)

// The limits of a group of changes that share a transaction, and of the changes that wait.
const (
	maxGroupChanges = 512
	maxGroupBytes   = 16 << 20
	maxWaiting      = 4096
)

// A change is a part of a transaction.
type change struct {
	accounts []AccountID   // that it may change
	create   []Owner       // accounts that are created if they do not exist
	contents []*newContent // that it adds

	// run makes the change. If it returns an error of its own, nothing of the change is kept. It may be called again in another transaction.
	run func(u *unit) error

	err  error
	done chan struct{}
}

// A changeQueue collects changes into groups. It runs one group at a time, so that the changes that arrive meanwhile form the next one.
type changeQueue struct {
	commit func([]*change)
	arrive chan *change
	ended  chan struct{} // closed when no change runs any more

	mu     sync.RWMutex // held for reading while a change is put into arrive
	closed bool
}

func newChangeQueue(commit func([]*change)) *changeQueue {
	q := &changeQueue{commit: commit, arrive: make(chan *change, maxWaiting), ended: make(chan struct{})}
	go q.run()
	return q
}

// do runs a change and waits for the commit. If the context ends before the change is in the queue, do returns its error. Later it waits,
// because the caller must know whether the change was made.
func (q *changeQueue) do(ctx context.Context, c *change) error {
	c.done = make(chan struct{})
	if err := q.put(ctx, c); err != nil {
		return err
	}
	<-c.done
	return c.err
}

func (q *changeQueue) put(ctx context.Context, c *change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	q.mu.RLock()
	defer q.mu.RUnlock()
	if q.closed {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping", Hint: "try again after it has restarted"}
	}
	select {
	case q.arrive <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *changeQueue) run() {
	defer close(q.ended)
	var late []*change
	for first := range q.arrive {
		group := []*change{first}
		bytes := first.bytes()
		for more := true; more && len(group) < maxGroupChanges && bytes < maxGroupBytes; {
			select {
			case c, ok := <-q.arrive:
				if more = ok; ok {
					group = append(group, c)
					bytes += c.bytes()
				}
			default:
				more = false
			}
		}
		answered := group
		if failpoint.Fault("acknowledge-before-mailbox-commit") { // each group is committed when the next one arrives
			group, late = late, group
		}
		q.commit(group)
		for _, c := range answered {
			close(c.done)
		}
	}
}

func (c *change) bytes() (n int) {
	for _, content := range c.contents {
		n += len(content.data)
	}
	return n
}

func (q *changeQueue) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.arrive)
	}
	q.mu.Unlock()
	<-q.ended
}
