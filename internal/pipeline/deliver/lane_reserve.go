package deliver

import "fanfare.dev/fanfare"

// Reserve is the part of a sender's connections that less urgent lanes leave free, so that an
// urgent message finds a free connection even if all others wait for a slow relay.
type Reserve struct {
	Urgent float64 // share of all connections for the urgent lane only
	Normal float64 // further share for the urgent and the normal lane
}

// lanes is a range of lanes.
type lanes struct{ first, last fanfare.Lane }

func (l lanes) has(lane fanfare.Lane) bool { return l.first <= lane && lane <= l.last }

// laneLimit returns how many of the connections a lane and the less urgent ones may use. A
// reserve is at least one connection, and every lane may use at least one.
func (r Reserve) laneLimit(lane fanfare.Lane, connections int) int {
	part := func(share float64) int {
		if share <= 0 {
			return 0
		}
		return max(1, int(share*float64(connections)))
	}
	most := connections
	if lane >= fanfare.Normal {
		most -= part(r.Urgent)
	}
	if lane >= fanfare.Bulk {
		most -= part(r.Normal)
	}
	return max(1, most)
}

// laneLimit returns how many connections may be busy with a lane and the less urgent ones
// now. The caller holds mu.
func (s *Sender) laneLimit(lane fanfare.Lane) int {
	return s.settings.Reserve.laneLimit(lane, s.limits.allowedConnections())
}

// Lanes of a connection that has no message.
const (
	idleLane   = -1
	comingLane = -2 // it is about to ask for one
)

// busy counts connections by the least urgent lane of their messages. The sender's lock
// guards it.
type busy struct {
	with   [len(fanfare.Lanes)]int
	coming int
}

// from returns how many connections are busy with a lane and the less urgent ones.
func (b *busy) from(lane fanfare.Lane) (n int) {
	for _, count := range b.with[lane:] {
		n += count
	}
	return n
}

// change changes the number of connections that are busy with a lane.
func (b *busy) change(with, by int) {
	switch with {
	case idleLane:
	case comingLane:
		b.coming += by
	default:
		b.with[with] += by
	}
}

// subtract removes the connections of a part.
func (b *busy) subtract(part *busy) {
	b.coming -= part.coming
	for lane, count := range part.with {
		b.with[lane] -= count
	}
}

// changeBusy changes the number of connections of a relay that are busy with a lane. The caller holds mu.
func (s *Sender) changeBusy(r *relay, with, by int) {
	r.busy.change(with, by)
	if !r.left {
		s.busy.change(with, by)
	}
}

// openLanes returns the lanes of which a connection may take a job now. The caller holds
// mu.
func (s *Sender) openLanes(q *connQueue) lanes {
	open := lanes{fanfare.Urgent, fanfare.Urgent}
	if len(q.jobs) > 0 && s.relays.idle() > 0 {
		open.first = fanfare.Normal // an urgent message must not wait behind one that may take minutes while a connection is idle
	}
	for _, lane := range fanfare.Lanes[fanfare.Normal:] {
		if q.busyLane < int(lane) && s.busy.from(lane) >= s.laneLimit(lane) {
			break
		}
		open.last = lane
	}
	return open
}

// countBusy updates the lane that a connection is busy with. A connection without a message
// is about to ask for one, until it waits. If it became less busy, another connection may
// use the free part of a lane. The caller holds mu.
func (s *Sender) countBusy(q *connQueue) {
	was := q.busyLane
	q.busyLane = comingLane
	for _, job := range q.jobs {
		q.busyLane = max(q.busyLane, int(job.batch.Lane))
	}
	s.changeBusy(q.relay, was, -1)
	s.changeBusy(q.relay, q.busyLane, +1)
	if q.busyLane < was && s.queued() > 0 {
		s.wakeOne()
	}
}

// countIdle notes that a connection waits for a message, or has ended. The caller holds mu.
func (s *Sender) countIdle(q *connQueue) {
	s.changeBusy(q.relay, q.busyLane, -1)
	q.busyLane = idleLane
}

// missingConnections returns how many more connections the sender could use: one for each
// waiting job, as far as its lane may use them. One more is for the next urgent message,
// which then need not wait for a new connection, once the less urgent lanes use all that
// they may. The caller holds mu.
func (s *Sender) missingConnections() int {
	var passed [len(fanfare.Lanes)]int
	for _, job := range s.failover {
		passed[job.batch.Lane]++
	}
	use := 0
	for lane := fanfare.Bulk; ; lane-- {
		use = min(use+s.busy.with[lane]+passed[lane]+s.waiting.lanes[lane].jobs.Len(), s.laneLimit(lane))
		if lane == fanfare.Urgent {
			break
		}
	}
	if use > 0 && use < s.limits.connections() && use >= s.laneLimit(fanfare.Bulk) {
		use++
	}
	return use - s.busy.from(fanfare.Urgent) - s.busy.coming - s.relays.idle()
}
