package match

import (
	"context"
	"errors"
	"log/slog"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxGroupsAhead is how many groups of events of a lane are read ahead, so that groups
	// of another service behind them are found. The rest stays on the bus. A group has up to
	// a thousand events.
	maxGroupsAhead = 4096
	// maxGroupBytes bounds the data of these groups in memory. The data of further groups is
	// read again when it is needed.
	maxGroupBytes = 32 << 20
	// turnEvents is how many events of a service are matched before the next service.
	turnEvents = 100
	// recipientsPerEvent is how many recipients of a result cost as much as one event.
	recipientsPerEvent = 100
)

// A group of events is under its lease until all of them are frozen.
type group struct {
	lease    *bus.Lease
	unfrozen int  // pieces
	counted  int  // bytes of its data that are counted
	finished bool // acknowledged, or returned; the rest of it is delivered again
}

// A piece is a share of the events of a group.
type piece struct {
	*group
	eventgroup.Share
	single bool // each event is frozen separately
}

// A groupQueue contains the event groups of one lane that wait to be matched. It returns the
// events of each service in turn, and the events of one service in their order. Events of a
// topic with a window wait for its end. A groupQueue belongs to one goroutine.
type groupQueue struct {
	queue      *bus.Queue
	bus        *bus.Bus
	unreadable func(*bus.Lease, error) // receives a group that cannot be read
	logger     *slog.Logger

	lane        fanfare.Lane
	clock       clock.Clock
	generations generations

	waiting *fairqueue.Queue[string, piece]
	windows []window // by their ends
	held    int      // groups
	bytes   int      // of data in memory
}

func newGroupQueue(queue *bus.Queue, lane fanfare.Lane, o Options) *groupQueue {
	return &groupQueue{queue: queue, bus: o.Bus, logger: o.Logger, lane: lane, clock: o.Clock, generations: o.Registry,
		waiting: fairqueue.New[string, piece](turnEvents)}
}

// await returns when there is a piece. It returns an error when ctx ends or the bus closes.
func (q *groupQueue) await(ctx context.Context) error {
	for q.endWindows(); q.waiting.Len() == 0; q.endWindows() {
		lease, err := q.nextLease(ctx)
		if err != nil {
			return err
		}
		if lease != nil {
			q.take(lease)
		}
	}
	return ctx.Err()
}

// next returns the piece whose turn it is, with the data of its group; false if there is none.
func (q *groupQueue) next(ctx context.Context) (p piece, ok bool) {
	q.readAhead()
	for {
		if p, ok = q.waiting.Pop(); !ok {
			return p, false
		}
		if p.finished {
			continue
		}
		err := q.fetch(ctx, p.group)
		if err == nil {
			return p, true
		}
		q.logger.Log(ctx, bus.FailureLevel(ctx, err), "cannot read a group of events; the bus will deliver it again", "error", err)
		q.retryLater(p)
	}
}

// charge charges a service for the recipients of its events.
func (q *groupQueue) charge(service string, recipients int) {
	q.waiting.Charge(service, recipients/recipientsPerEvent)
}

// readAhead takes the groups that the bus has ready.
func (q *groupQueue) readAhead() {
	defer q.endWindows()
	for q.held < maxGroupsAhead {
		lease, err := q.queue.Poll()
		if lease == nil || err != nil {
			return
		}
		q.take(lease)
	}
}

func (q *groupQueue) take(lease *bus.Lease) {
	shares, err := eventgroup.Shares(lease.Data, q.separate)
	if err == nil && len(shares) == 0 {
		err = errors.New("the group has no events")
	}
	if err != nil {
		q.unreadable(lease, err)
		return
	}
	g := &group{lease: lease, unfrozen: len(shares)}
	q.held++
	if q.bytes+len(lease.Data) > maxGroupBytes {
		lease.Data = nil
	}
	q.count(g)
	for _, share := range shares {
		q.push(piece{group: g, Share: share})
	}
}

// count updates the bytes of a group that are in memory.
func (q *groupQueue) count(g *group) {
	q.bytes += len(g.lease.Data) - g.counted
	g.counted = len(g.lease.Data)
}

// fetch reads the data of a group again if it is not in memory.
func (q *groupQueue) fetch(ctx context.Context, g *group) error {
	if g.lease.Data != nil {
		return nil
	}
	data, _, err := q.bus.EventGroup(ctx, g.lease.Seq)
	if err == nil && data == nil {
		err = errors.New("the group is no longer on the bus")
	}
	if err != nil {
		return err
	}
	g.lease.Data = data
	q.count(g)
	return nil
}

// frozen counts a piece as frozen, and acknowledges its group after the last piece.
func (q *groupQueue) frozen(p piece) error {
	if p.finished {
		return nil
	}
	if p.unfrozen--; p.unfrozen > 0 {
		if q.bytes > maxGroupBytes { // the turn of the other pieces may be much later
			q.dropData(p.group)
		}
		return nil
	}
	q.finish(p.group)
	return p.lease.Done()
}

// retryLater returns the group of a piece to the bus, unless this was already done.
func (q *groupQueue) retryLater(p piece) {
	if p.finished {
		return
	}
	q.finish(p.group)
	if err := p.lease.Later(retry.Pause); err != nil {
		q.logger.Warn("cannot return a group of events to the bus", "error", err)
	}
}

// finish removes a group. The caller acknowledges or returns its lease.
func (q *groupQueue) finish(g *group) {
	if g.finished {
		return
	}
	g.finished = true
	q.dropData(g)
	q.held--
}

// dropData releases the data of a group.
func (q *groupQueue) dropData(g *group) {
	g.lease.Data = nil
	q.count(g)
}

// returnAll returns all waiting groups to the bus.
func (q *groupQueue) returnAll() {
	all := q.waiting.Remove(func(piece) bool { return true })
	for _, w := range q.windows {
		all = append(all, w.piece)
	}
	q.windows = nil
	for _, p := range all {
		if !p.finished {
			q.finish(p.group)
			_ = p.lease.Later(0) // after an error, it is delivered again when its lease ends
		}
	}
}
