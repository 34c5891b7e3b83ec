package server

import (
	"context"
	"errors"
	"log/slog"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/pipeline/deliver/fairqueue"
	"fanfare.dev/fanfare/internal/pipeline/ingest"
	"fanfare.dev/fanfare/internal/store/retry"
)

const (
	// maxGroupsAhead is how many groups of events of a lane are read ahead, so that
	// those of another service are seen behind them; the rest stays on the bus. A
	// group has up to a thousand events.
	maxGroupsAhead = 4096
	// maxGroupBytesAhead is for how many bytes of them the events are kept at hand.
	// Those of the others are read again when it is their turn.
	maxGroupBytesAhead = 32 << 20
	// turnEvents is how many events a service may have matched each turn.
	turnEvents = 100
	// membersOfAnEvent is how many members of a result cost as much as an event.
	membersOfAnEvent = 100
)

// A group of events is under its lease until all of them are frozen.
type group struct {
	lease  *bus.Lease
	left   int  // pieces that are not frozen yet
	beside int  // bytes that count as at hand
	over   bool // done, or given back: what is left of it comes again
}

// A piece is a share of the events of a group.
type piece struct {
	*group
	ingest.Share
	single bool // each event is frozen by itself
}

// groups has the event groups of one lane that wait to be matched, and says whose
// events are next: each service in turn, and its own events in their order; those of a
// topic with a window when that is over. It
// belongs to one goroutine.
type groups struct {
	queue  *bus.Queue
	bus    *bus.Bus
	bad    func(*bus.Lease, error) // takes a group that cannot be read
	logger *slog.Logger

	lane        fanfare.Lane
	clock       clock.Clock
	generations generations

	waiting *fairqueue.Queue[string, piece]
	windows []window // by their ends
	held    int      // groups
	bytes   int      // of events that are at hand
}

func (m *matching) newGroups(bad func(*bus.Lease, error)) *groups {
	return &groups{queue: m.queue, bus: m.bus, bad: bad, logger: m.logger, lane: m.lane, clock: m.clock, generations: m.registry,
		waiting: fairqueue.New[string, piece](turnEvents)}
}

// await returns when there is a piece. It returns an error when ctx ends or the bus
// closes.
func (g *groups) await(ctx context.Context) error {
	for g.endWindows(); g.waiting.Len() == 0; g.endWindows() {
		lease, err := g.nextOrEnd(ctx)
		if err != nil {
			return err
		}
		if lease != nil {
			g.take(lease)
		}
	}
	return ctx.Err()
}

// next returns the piece whose turn it is, with its group's events; none if nothing
// is here. Where they cannot be read, the group has been given back.
func (g *groups) next(ctx context.Context) (p piece, ok bool) {
	g.readAhead()
	for {
		if p, ok = g.waiting.Pop(); !ok {
			return p, false
		}
		if p.over {
			continue
		}
		err := g.fetch(ctx, p.group)
		if err == nil {
			return p, true
		}
		g.logger.Log(ctx, bus.FailureLevel(ctx, err), "a group of events could not be read again, it comes again", "error", err)
		g.later(p)
	}
}

// charge has a service pay for what its events turned out to set off.
func (g *groups) charge(service string, members int) {
	g.waiting.Charge(service, members/membersOfAnEvent)
}

// readAhead takes what the bus has ready.
func (g *groups) readAhead() {
	defer g.endWindows()
	for g.held < maxGroupsAhead {
		lease, err := g.queue.Poll()
		if lease == nil || err != nil {
			return
		}
		g.take(lease)
	}
}

func (g *groups) take(lease *bus.Lease) {
	shares, err := ingest.Shares(lease.Data, g.apart)
	if err == nil && len(shares) == 0 {
		err = errors.New("the group has no events")
	}
	if err != nil {
		g.bad(lease, err)
		return
	}
	taken := &group{lease: lease, left: len(shares)}
	g.held++
	if g.bytes+len(lease.Data) > maxGroupBytesAhead {
		lease.Data = nil
	}
	g.keep(taken)
	for _, share := range shares {
		g.push(piece{group: taken, Share: share})
	}
}

// keep counts the events of a group as at hand.
func (g *groups) keep(of *group) {
	g.bytes += len(of.lease.Data) - of.beside
	of.beside = len(of.lease.Data)
}

// fetch reads the events of a group again that are not at hand.
func (g *groups) fetch(ctx context.Context, of *group) error {
	if of.lease.Data != nil {
		return nil
	}
	data, _, err := g.bus.EventGroup(ctx, of.lease.Seq)
	if err == nil && data == nil {
		err = errors.New("the group is on the bus no more")
	}
	if err != nil {
		return err
	}
	of.lease.Data = data
	g.keep(of)
	return nil
}

// frozen counts the events of a piece as frozen, and takes the group off the bus
// when all of its are.
func (g *groups) frozen(p piece) error {
	if p.over {
		return nil
	}
	if p.left--; p.left > 0 {
		if g.bytes > maxGroupBytesAhead { // the others' turn may come much later
			g.letGo(p.group)
		}
		return nil
	}
	g.end(p.group)
	return p.lease.Done()
}

// later gives the group of a piece back, unless that was done.
func (g *groups) later(p piece) {
	if p.over {
		return
	}
	g.end(p.group)
	if err := p.lease.Later(retry.Pause); err != nil {
		g.logger.Warn("a group could not be given back", "error", err)
	}
}

// end forgets a group; whoever calls it has a word for its lease.
func (g *groups) end(of *group) {
	if of.over {
		return
	}
	of.over = true
	g.letGo(of)
	g.held--
}

// letGo has the events of a group at hand no more.
func (g *groups) letGo(of *group) {
	of.lease.Data = nil
	g.keep(of)
}

// giveBack returns what waits to the bus.
func (g *groups) giveBack() {
	all := g.waiting.Remove(func(piece) bool { return true })
	for _, w := range g.windows {
		all = append(all, w.piece)
	}
	g.windows = nil
	for _, p := range all {
		if !p.over {
			g.end(p.group)
			_ = p.lease.Later(0) // or it comes after its lease
		}
	}
}
