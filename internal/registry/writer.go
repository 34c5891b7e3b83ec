package registry

import (
	"context"
	"log/slog"
	"sync"

	"fanfare.dev/fanfare"
)

const (
	// maxQueue is how many calls may wait for the writer; more block.
	maxQueue = 256
	// maxGroup is how many subscriptions one transaction takes, unless a single
	// call has more.
	maxGroup = 16_384
	// maxJob is how many subscriptions one call hands in at a time.
	maxJob = 8_192
)

// A job is what one call asks of the writer. Exactly one of the kinds is set.
type job struct {
	svc   *service
	conf  *snapshot // that wants were checked against
	wants []want    // puts
	end   *end
	run   func(*writer) error // a change of the configuration: by itself

	err  error
	done chan struct{}
}

// An end asks for the end of one subscription, by place or by service and id.
type end struct {
	place  fanfare.Place // 0: by id
	id     string
	reason string
}

// A writer is the one goroutine that changes anything.
type writer struct {
	r    *Registry
	jobs chan *job
	gone sync.WaitGroup

	changeSeq        uint64
	nextSubscriber   [fanfare.Partitions]uint32
	nextSubscription [fanfare.Partitions]uint32
	nextFilter       uint32
	channelUse       map[uint16]int64 // active subscriptions by channel
	group            group
}

func newWriter(r *Registry) *writer {
	w := &writer{r: r, jobs: make(chan *job, maxQueue), channelUse: map[uint16]int64{}}
	for i := range fanfare.Partitions {
		w.nextSubscriber[i], w.nextSubscription[i] = 1, 1 // place 0 is nobody's
	}
	return w
}

func (w *writer) start() {
	w.gone.Go(w.loop)
}

// submit hands j in and waits until it is done. When ctx ends before the writer
// took it, nothing of it happens; afterwards its outcome is waited for.
func (w *writer) submit(ctx context.Context, j *job) error {
	j.done = make(chan struct{})
	w.r.closing.RLock()
	if w.r.closed {
		w.r.closing.RUnlock()
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server is stopping"}
	}
	select {
	case w.jobs <- j:
		w.r.closing.RUnlock()
	case <-ctx.Done():
		w.r.closing.RUnlock()
		return ctx.Err()
	}
	<-j.done
	return j.err
}

// loop gathers what waits, and does it, until the queue is closed and empty.
func (w *writer) loop() {
	var held *job // the one that did not fit into the last group
	for {
		first := held
		held = nil
		if first == nil {
			var ok bool
			if first, ok = <-w.jobs; !ok {
				return
			}
		}
		jobs, size := []*job{first}, first.size()
		for first.run == nil && size < maxGroup {
			var next *job
			select {
			case next = <-w.jobs:
			default:
			}
			if next == nil {
				break
			}
			if next.run != nil || size+next.size() > maxGroup {
				held = next
				break
			}
			jobs, size = append(jobs, next), size+next.size()
		}
		w.do(jobs)
	}
}

func (j *job) size() int { return max(1, len(j.wants)) }

func (w *writer) do(jobs []*job) {
	if run := jobs[0].run; run != nil {
		jobs[0].err = run(w)
	} else if err := w.changeSubscriptions(jobs); err != nil {
		for _, j := range jobs {
			j.err = err
		}
	}
	for _, j := range jobs {
		close(j.done)
	}
}

// changeSubscriptions decides on all jobs, commits, and makes it seen. Where the
// commit fails, it is as if nothing had been asked.
func (w *writer) changeSubscriptions(jobs []*job) error {
	g := &w.group
	g.begin(w)
	defer g.release()
	if err := g.prefetch(jobs); err != nil {
		return unavailable(err)
	}
	for _, j := range jobs {
		if j.end != nil {
			j.err = g.end(j.svc, j.end)
			continue
		}
		g.put(j)
	}
	if !g.finish() {
		return nil // all was as asked already
	}
	if err := w.r.opt.Store.Commit(&g.batch); err != nil {
		g.undo()
		return err
	}
	w.changeSeq = g.batch.ChangeSeq
	w.r.filters.add(g.batch.Filters)
	if err := g.publish(); err != nil {
		// What was checked before cannot be refused now; if it is, the index
		// lacks it until the next start, and somebody must know.
		slog.Error("registry: the match index refused what is committed", "error", err)
	}
	w.r.changeSeq.Store(w.changeSeq)
	return nil
}

func unavailable(err error) error {
	if e, ok := err.(*fanfare.Error); ok {
		return e
	}
	slog.Error("registry: reading the store", "error", err)
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "the control store could not be read", Hint: "the server's log has the cause"}
}
