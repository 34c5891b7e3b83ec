package deliver

import "fanfare.dev/fanfare"

// Reserve is the part of an outlet's connections that less urgent lanes leave
// free, so that an urgent message meets a free connection while all others wait
// for a slow relay.
type Reserve struct {
	Urgent float64 // of all connections: for the urgent lane alone
	Normal float64 // of all connections, besides: for the urgent and the normal lane
}

// lanes are neighbours: from the first to the last.
type lanes struct{ first, last fanfare.Lane }

func (l lanes) has(lane fanfare.Lane) bool { return l.first <= lane && lane <= l.last }

var allLanes = lanes{fanfare.Urgent, fanfare.Bulk}

// laneLimit is how many of some connections a lane and those below it may have. What is
// reserved is one connection at least, and one is left to every lane.
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

// laneLimit is how many connections may be busy with a lane and those below it now. The
// caller holds mu.
func (o *Sender) laneLimit(lane fanfare.Lane) int {
	return o.settings.Reserve.laneLimit(lane, o.limits.allowedConnections())
}

// What a connection is busy with that has no message.
const (
	idleLane   = -1
	comingLane = -2 // it is about to ask for one
)

// busy counts connections by the least urgent lane of what they have. It is
// guarded by the outlet.
type busy struct {
	with   [len(fanfare.Lanes)]int
	coming int
}

// from is how many connections are busy with a lane and those below it.
func (b *busy) from(lane fanfare.Lane) (n int) {
	for _, count := range b.with[lane:] {
		n += count
	}
	return n
}

// change counts one connection as busy with something, or no more.
func (b *busy) change(with, by int) {
	switch with {
	case idleLane:
	case comingLane:
		b.coming += by
	default:
		b.with[with] += by
	}
}

// openLanes are the lanes of which a connection may take a job now. The caller holds
// mu.
func (o *Sender) openLanes(d *connQueue) lanes {
	open := lanes{fanfare.Urgent, fanfare.Urgent}
	if len(d.jobs) > 0 && o.relays.idle() > 0 {
		open.first = fanfare.Normal // behind a message that may take minutes is no place for what others can begin at once
	}
	for _, lane := range fanfare.Lanes[fanfare.Normal:] {
		if d.busyLane < int(lane) && o.busy.from(lane) >= o.laneLimit(lane) {
			break
		}
		open.last = lane
	}
	return open
}

// countBusy notes what a connection is busy with. One without a message is about to ask
// for one, until it waits. Where it has become less, the part of a lane may have
// become free for another. The caller holds mu.
func (o *Sender) countBusy(d *connQueue) {
	was := d.busyLane
	d.busyLane = comingLane
	for _, job := range d.jobs {
		d.busyLane = max(d.busyLane, int(job.batch.Lane))
	}
	o.busy.change(was, -1)
	o.busy.change(d.busyLane, +1)
	if d.busyLane < was && o.queued() > 0 {
		o.wakeOne()
	}
}

// countIdle notes that a connection waits for a message, or is over. The caller holds
// mu.
func (o *Sender) countIdle(d *connQueue) {
	o.busy.change(d.busyLane, -1)
	d.busyLane = idleLane
}

// missingConnections is how many connections more the outlet could use: one for each job
// that waits, as far as its lane may have them, and one to spare once the less
// urgent lanes have all they may, so that what is urgent need not wait for a
// connection to be made. The caller holds mu.
func (o *Sender) missingConnections() int {
	var passed [len(fanfare.Lanes)]int
	for _, job := range o.failover {
		passed[job.batch.Lane]++
	}
	use := 0
	for lane := fanfare.Bulk; ; lane-- {
		use = min(use+o.busy.with[lane]+passed[lane]+o.waiting.lanes[lane].jobs.Len(), o.laneLimit(lane))
		if lane == fanfare.Urgent {
			break
		}
	}
	if use > 0 && use < o.limits.connections() && use >= o.laneLimit(fanfare.Bulk) {
		use++
	}
	return use - o.busy.from(fanfare.Urgent) - o.busy.coming - o.relays.idle()
}
