package deliver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// relays are the next hops of a channel; the sender's lock guards them. Each relay has
// seats among the channel's connections, by weight, and every free connection takes the
// next message. The weights therefore divide the messages among equally fast relays, and a
// faster relay receives more.
type relays []*relay

const (
	minFactor    = 0.02            // of a weight: enough to notice that the relay has recovered
	recoveryTime = 3 * time.Minute // from nothing to the full weight
	adjustEvery  = time.Second

	minAnswers      = 20                    // with fewer replies, errors do not count
	minErrors       = 3                     // fewer errors do not count
	minDurations    = 10                    // with fewer durations, they do not count
	toleratedErrors = 0.05                  // share of errors that does not count
	toleratedRatio  = 2                     // to the fastest other relay
	toleratedDelay  = 20 * time.Millisecond // behind the fastest other relay
)

// next returns the relay for a new connection: the one that is furthest below its share. If
// without is true, only relays without a connection are considered. It returns nil if no
// relay may open a connection now.
func (all relays) next(now time.Time, without bool) *relay {
	var next *relay
	for _, r := range all {
		if !r.mayConnect(now) || without && r.connections > 0 {
			continue
		}
		if next == nil || r.before(next) {
			next = r
		}
	}
	return next
}

// before reports whether r gets a connection before other (Sainte-Laguë method).
func (r *relay) before(other *relay) bool {
	return r.weight()*float64(2*other.connections+1) > other.weight()*float64(2*r.connections+1)
}

func (all relays) idle() int {
	n := 0
	for _, r := range all {
		n += len(r.idle)
	}
	return n
}

// hasOther reports whether a relay that has not refused a job could get it.
func (all relays) hasOther(job *Job) bool {
	return slices.ContainsFunc(all, func(r *relay) bool { return r.used() && !r.down() && !r.refused(job) })
}

// hasOtherThan reports whether there is a next hop other than that of r.
func (all relays) hasOtherThan(r *relay) bool {
	return slices.ContainsFunc(all, func(other *relay) bool { return other.Name != r.Name })
}

// refused reports whether the relay has refused a job, from any node.
func (r *relay) refused(job *Job) bool {
	return slices.ContainsFunc(job.refusedBy, func(by *relay) bool { return by.Name == r.Name })
}

// assignSeats divides the connections: one for each relay in use, no more than that for a
// relay that is down, and the rest by weight. A node gets no more than its share, also while the relays of others are down.
// The caller holds mu.
func (s *Sender) assignSeats() {
	rest := s.settings.Connections
	var open relays
	ofNode := map[string]int{}
	for _, r := range s.relays {
		ofNode[r.Node] = 0
	}
	share := s.settings.Connections / max(1, len(ofNode))
	for _, r := range s.relays {
		r.seats = 0
		if !r.used() {
			continue
		}
		r.seats = 1
		rest--
		ofNode[r.Node]++
		if !r.down() {
			open = append(open, r)
		}
	}
	for ; rest > 0; rest-- {
		var next *relay
		for _, r := range open {
			if ofNode[r.Node] < share && (next == nil || r.weight()*float64(2*next.seats+1) > next.weight()*float64(2*r.seats+1)) {
				next = r
			}
		}
		if next == nil {
			break
		}
		next.seats++
		ofNode[next.Node]++
	}
}

// adjustWeights adjusts the weights once a second: down for relays that fail or are slower
// than others, and back up over minutes. The caller holds mu.
func (s *Sender) adjustWeights(now time.Time) {
	elapsed := now.Sub(s.weightsAdjusted)
	if elapsed < adjustEvery || len(s.relays) < 2 {
		return
	}
	s.weightsAdjusted = now
	took := s.speeds(now)
	for i, r := range s.relays {
		sum := r.window.sum(now, windowParts)
		deserved := min(reliability(&sum), speed(took, i))
		if r.factor > deserved {
			r.factor = max(deserved, r.factor/2)
		} else {
			r.factor = min(deserved, r.factor+float64(elapsed)/float64(recoveryTime))
		}
	}
	s.assignSeats()
}

// reliability returns the factor that a relay deserves by its errors; it is minFactor if
// every second message fails.
func reliability(s *windowSlot) float64 {
	share := float64(s.errors) / float64(max(s.answers, 1))
	if s.answers < minAnswers || s.errors < minErrors || share <= toleratedErrors {
		return 1
	}
	return max(minFactor, 1-2*share)
}

// speeds returns the median duration of recent messages for each relay, or 0 if too few are
// known. A message that is in flight for long counts already. The caller holds mu.
func (s *Sender) speeds(now time.Time) []time.Duration {
	of := make(map[*relay]*histogram, len(s.relays))
	for _, r := range s.relays {
		sum := r.window.sum(now, 2)
		of[r] = &sum.durations
	}
	for _, job := range s.inFlight {
		if took := of[job.relay]; took != nil && now.Sub(job.takenAt) > windowSeconds*time.Second {
			took.count(now.Sub(job.takenAt))
		}
	}
	medians := make([]time.Duration, len(s.relays))
	for i, r := range s.relays {
		if of[r].total >= minDurations {
			medians[i] = of[r].quantile(0.5)
		}
	}
	return medians
}

// speed returns the factor that a relay deserves by its durations, compared with the
// fastest of the others.
func speed(took []time.Duration, of int) float64 {
	own, quickest := took[of], time.Duration(0)
	for i, other := range took {
		if i != of && other > 0 && (quickest == 0 || other < quickest) {
			quickest = other
		}
	}
	if quickest == 0 || own-quickest < toleratedDelay || own < toleratedRatio*quickest {
		return 1
	}
	return max(minFactor, toleratedRatio*float64(quickest)/float64(own))
}

// seatTaken reports whether a connection of r should end so that another relay gets its
// seat. The caller holds mu.
func (s *Sender) seatTaken(r *relay) bool {
	if r.connections <= r.seats+r.extraSeats || s.connections < s.limits.connections() {
		return false
	}
	return s.relays.next(s.options.Clock.Now(), false) != nil
}

// wakeOne wakes an idle connection, so that it looks for a job. It chooses the relay by
// weight (smooth weighted round robin), which divides the messages among relays that are
// all idle. Since that relay may have refused a failover job, connections of the others
// look too. The caller holds mu.
func (s *Sender) wakeOne() {
	var next *relay
	total := 0.0
	for _, r := range s.relays {
		if len(r.idle) == 0 {
			continue
		}
		r.credit += r.weight()
		total += r.weight()
		if next == nil || r.credit > next.credit {
			next = r
		}
	}
	if next == nil {
		return // a busy connection looks for a job when it is done
	}
	next.credit -= total
	s.wake(next)
	s.wakeForFailover()
}

// wake wakes the connection of a relay that has been idle for longest. It counts as coming,
// so that no new connection is opened in its place. The caller holds mu.
func (s *Sender) wake(r *relay) {
	q := r.idle[0]
	r.idle = slices.Delete(r.idle, 0, 1)
	if q.busyLane == idleLane {
		q.busyLane = comingLane
		s.changeBusy(r, comingLane, +1)
	}
	q.wake <- struct{}{}
}

// configure applies the relays of new settings. Connections under the old settings finish
// their message and close; those of relays whose settings are the same stay. The caller holds mu.
func (s *Sender) configure(wanted []RelaySettings) {
	old := s.relays
	s.relays = nil
	for _, settings := range wanted {
		r := &relay{factor: 1}
		if i := slices.IndexFunc(old, func(r *relay) bool { return r.Name == settings.Name && r.Node == settings.Node }); i >= 0 {
			r, old = old[i], slices.Delete(slices.Clone(old), i, i+1)
			s.relays = append(s.relays, r)
			if r.equal(&settings) {
				continue
			}
			r.cancel()
			r.stopTimer()
		} else {
			s.relays = append(s.relays, r)
		}
		r.RelaySettings = settings
		r.reset()
		r.ctx, r.cancel = context.WithCancel(s.ctx)
	}
	for _, r := range old {
		r.cancel()
		r.stopTimer()
		if r.Node != "" {
			s.leaveOut(r)
		}
	}
	s.assignSeats()
}

// leaveOut counts the connections of a node that has left no longer. If its link was lost, they end only when the node has
// certainly closed them, and nobody can use them until then. The caller holds mu.
func (s *Sender) leaveOut(r *relay) {
	r.left = true
	s.connections -= r.connections
	s.busy.subtract(&r.busy)
}

// Drain stops or restarts sending through a relay, on all nodes; messages in flight finish. It
// reports whether the relay exists.
func (s *Sender) Drain(name string, drained bool) (exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := false
	for _, r := range s.relays {
		if r.Name != name {
			continue
		}
		if exists = true; r.Drained == drained {
			continue
		}
		changed = true
		r.Drained = drained
		r.reset()
		r.cancel()
		r.ctx, r.cancel = context.WithCancel(s.ctx)
	}
	if changed {
		s.assignSeats()
		s.wakeForFailover()
		s.openConnections()
	}
	return exists
}

// RelaySettings describes one next hop of a channel, as one node reaches it.
type RelaySettings struct {
	Name          string // of the next hop
	Node          string // whose connections these are; "" for this server. Name and Node are unique within the channel
	Driver        driver.Driver
	Weight        int  // relative to the other relays; 0: unused
	Drained       bool // an operator stopped sending through it
	ManyReceivers bool // it represents independent receivers, so a reply of one of them does not apply to the others
}

// equal reports whether two settings are the same, including the driver.
func (r *RelaySettings) equal(other *RelaySettings) bool {
	a, b := *r, *other
	a.Driver, b.Driver = nil, nil
	return a == b && reflect.ValueOf(r.Driver).Comparable() && reflect.ValueOf(other.Driver).Comparable() && r.Driver == other.Driver
}

// relay is the state of a next hop. The sender's lock guards it.
type relay struct {
	RelaySettings
	connections int
	busy        busy         // these connections
	left        bool         // its node has left: the sender does not count its connections
	seats       int          // connections that it may have
	extraSeats  int          // further ones in place of those that wait for slow destinations
	idle        []*connQueue // connections that wait for a job, the longest idle one first
	credit      float64      // for wakeOne: the highest is next

	factor   float64 // of the weight, from minFactor to 1: lower while the relay fails or is slow
	window   outcomeWindow
	accepted int64
	fast     int64 // messages that did not take long
	errors   int64 // messages lost or refused for reasons of its own, and lost connections

	refusals     int // messages in a row refused for reasons of its own
	failures     int // connections lost in a row without a reply
	lastError    string
	lastErrorAt  time.Time
	blockedUntil time.Time // no new connection before that
	unblockTimer *time.Timer

	ctx    context.Context // of connections under the current settings
	cancel context.CancelFunc
}

// down reports whether the relay does not work. One lost connection does not prove that.
func (r *relay) down() bool { return r.failures > 1 }

// used reports whether the relay should get messages.
func (r *relay) used() bool { return r.Weight > 0 && !r.Drained }

// weight returns the adjusted weight.
func (r *relay) weight() float64 { return float64(r.Weight) * r.factor }

// reset forgets failures after a change of settings.
func (r *relay) reset() { r.refusals, r.failures, r.blockedUntil, r.factor = 0, 0, time.Time{}, 1 }

// stopTimer stops the timer that ends a pause.
func (r *relay) stopTimer() {
	if r.unblockTimer != nil {
		r.unblockTimer.Stop()
		r.unblockTimer = nil
	}
}

// mayConnect reports whether the relay may open a connection now.
func (r *relay) mayConnect(now time.Time) bool {
	if !r.used() || r.connections >= r.seats+r.extraSeats || now.Before(r.blockedUntil) {
		return false
	}
	return r.failures == 0 || r.connections == 0 // one connection tries a relay in doubt
}

// openConnections opens as many connections as the waiting jobs can use, and one for each
// relay without any, so that the state of all relays is known. The caller holds mu.
func (s *Sender) openConnections() {
	if s.ctx.Err() != nil || s.queued() == 0 {
		return
	}
	now := s.options.Clock.Now()
	if s.limits.closedUntil.Sub(now) > s.settings.IdleTimeout {
		return // a connection would only wait; the timer is set
	}
	for _, r := range s.relays {
		r.extraSeats = s.limits.extraConnections()
	}
	wanted := s.missingConnections()
	for s.connections < s.limits.connections() {
		r := s.relays.next(now, wanted <= 0)
		if r == nil {
			break
		}
		wanted--
		r.connections++
		s.connections++
		s.changeBusy(r, comingLane, +1)
		driver, ctx := r.Driver, r.ctx
		s.running.Go(func() { s.connect(ctx, r, driver) })
	}
	for _, r := range s.relays {
		if pause := r.blockedUntil.Sub(now); pause > 0 && r.used() && r.unblockTimer == nil {
			r.unblockTimer = time.AfterFunc(pause, func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				r.unblockTimer = nil
				s.openConnections()
			})
		}
	}
}

// connect runs one connection until it ends.
func (s *Sender) connect(ctx context.Context, r *relay, driver driver.Driver) {
	q := newConnQueue(s, r)
	err := serve(ctx, driver, q)
	q.abandon(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.countIdle(q)
	r.connections--
	if !r.left {
		s.connections--
	}
	if s.queued() > 0 {
		s.wakeOne() // part of a lane may be free now
	}
	if err != nil && ctx.Err() == nil {
		s.connectionLost(r, err.Error())
	}
	s.openConnections()
	if q.closing {
		s.wakeOne() // it may have been woken for a job that it left to others
	}
}

func serve(ctx context.Context, driver driver.Driver, queue driver.Queue) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("driver panicked: %v", p)
		}
	}()
	return driver.Serve(ctx, queue)
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = 30 * time.Second
)

// refusalsInARow is how many messages in a row a relay may refuse for reasons of its own
// before that counts as a lost connection, if there are other relays.
const refusalsInARow = 5

// connectionLost counts a lost connection. The caller holds mu.
func (s *Sender) connectionLost(r *relay, why string) {
	now := s.options.Clock.Now()
	r.lastError, r.lastErrorAt = why, now
	if now.Before(r.blockedUntil) {
		return // when a relay goes down, all its connections are lost together, which counts as one failure
	}
	r.failures++
	r.errors++
	r.window.at(now).errors++
	r.window.at(now).answers++
	if r.failures == 1 {
		attributes := []any{"channel", s.options.Name, "relay", r.Name, "error", why}
		if r.Node != "" {
			attributes = append(attributes, "node", r.Node)
		}
		s.options.Logger.Warn("connection lost", attributes...)
		return
	}
	pause := min(longestPause, firstPause<<min(r.failures-2, 10))
	pause = pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1))
	r.blockedUntil = now.Add(pause)
	r.factor = max(minFactor, r.factor/2)
	s.assignSeats()
	s.wakeForFailover() // other relays may take its jobs now
}

// countOutcome counts an outcome of a relay. The caller holds mu.
func (s *Sender) countOutcome(r *relay, outcome *driver.Outcome, took time.Duration, now time.Time) {
	part := r.window.at(now)
	part.answers++
	if r.ManyReceivers || !aboutRelay(outcome) {
		r.refusals = 0
		if r.failures > 0 {
			r.failures = 0
			s.assignSeats()
		}
		if outcome.Verdict == driver.Accepted {
			r.accepted++
			part.durations.count(took)
		}
		s.adjustWeights(now)
		return
	}
	r.errors++
	part.errors++
	r.lastError, r.lastErrorAt = reasonOf(outcome), now
	if outcome.Verdict != driver.Lost { // a lost connection is counted by connectionLost
		r.refusals++
	}
	if r.refusals >= refusalsInARow && s.relays.hasOtherThan(r) {
		r.refusals = 0
		s.connectionLost(r, r.lastError)
	}
	s.adjustWeights(now)
}

// aboutRelay reports whether an outcome concerns the relay and not the message.
func aboutRelay(outcome *driver.Outcome) bool {
	switch outcome.Verdict {
	case driver.Lost:
		return true
	case driver.Temporary:
		switch outcome.Class {
		case fanfare.ClassThrottled, fanfare.ClassBusy, fanfare.ClassNetwork, fanfare.ClassBlocked, fanfare.ClassDenied:
			return true
		}
		return outcome.Code == 421 // the server closes the connection (RFC 5321, section 3.8)
	}
	return false
}

func reasonOf(outcome *driver.Outcome) string {
	if outcome.Code == 0 {
		return outcome.Text
	}
	return fmt.Sprintf("%d %s", outcome.Code, outcome.Text)
}
