package deliver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// relays are the next hops of a channel, guarded by the outlet. Each has seats
// among the channel's connections, by its weight; a message goes by whoever takes
// it first. So the weights say how the messages are shared out while the relays
// are alike, and a faster one takes more.
type relays []*relay

const (
	minFactor    = 0.02            // of a weight: enough to be noticed when all is well again
	recoveryTime = 3 * time.Minute // from nothing to the whole weight
	adjustEvery  = time.Second

	minAnswers      = 20                    // below that errors say nothing
	minErrors       = 3                     // a single error never counts
	minDurations    = 10                    // below that times say nothing
	toleratedErrors = 0.05                  // that is overlooked
	toleratedRatio  = 2                     // to the quickest other relay, that is overlooked
	toleratedDelay  = 20 * time.Millisecond // behind it, that is overlooked
)

// next returns the relay that a new connection goes to: the one that has the
// least of its share. With only those without any connection, it passes over the
// others. nil means that none may open one now.
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

// before reports whether r is to get a connection before other (Sainte-Laguë).
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

// hasOther returns whether a relay that has not refused a job could have it.
func (all relays) hasOther(job *Job) bool {
	return slices.ContainsFunc(all, func(r *relay) bool { return r.used() && !r.down() && !slices.Contains(job.refusedBy, r) })
}

// assignSeats shares out the connections: each relay in use has one, one that is down
// no more than that, and the rest goes by weight. The caller holds mu.
func (o *Sender) assignSeats() {
	rest := o.settings.Connections
	var open relays
	for _, r := range o.relays {
		r.seats = 0
		if !r.used() {
			continue
		}
		r.seats = 1
		rest--
		if !r.down() {
			open = append(open, r)
		}
	}
	for ; rest > 0 && len(open) > 0; rest-- {
		next := open[0]
		for _, r := range open[1:] {
			if r.weight()*float64(2*next.seats+1) > next.weight()*float64(2*r.seats+1) {
				next = r
			}
		}
		next.seats++
	}
}

// adjustWeights moves weights, once a second: away from relays that fail or are slower
// than the others, and back over minutes. The caller holds mu.
func (o *Sender) adjustWeights(now time.Time) {
	elapsed := now.Sub(o.weightsAdjusted)
	if elapsed < adjustEvery || len(o.relays) < 2 {
		return
	}
	o.weightsAdjusted = now
	took := o.speeds(now)
	for i, r := range o.relays {
		s := r.window.sum(now, windowParts)
		deserved := min(reliability(&s), speed(took, i))
		if r.factor > deserved {
			r.factor = max(deserved, r.factor/2)
		} else {
			r.factor = min(deserved, r.factor+float64(elapsed)/float64(recoveryTime))
		}
	}
	o.assignSeats()
}

// reliability is what factor a relay deserves by its errors: the least one with
// which every second message goes wrong.
func reliability(s *windowSlot) float64 {
	share := float64(s.errors) / float64(max(s.answers, 1))
	if s.answers < minAnswers || s.errors < minErrors || share <= toleratedErrors {
		return 1
	}
	return max(minFactor, 1-2*share)
}

// speeds is how long messages took each relay lately, half of them at most; 0
// where too few are known. One that is on the wire for long counts already. The
// caller holds mu.
func (o *Sender) speeds(now time.Time) []time.Duration {
	of := make(map[*relay]*histogram, len(o.relays))
	for _, r := range o.relays {
		s := r.window.sum(now, 2)
		of[r] = &s.durations
	}
	for _, job := range o.inFlight {
		if took := of[job.relay]; took != nil && now.Sub(job.takenAt) > windowSeconds*time.Second {
			took.count(now.Sub(job.takenAt))
		}
	}
	medians := make([]time.Duration, len(o.relays))
	for i, r := range o.relays {
		if of[r].total >= minDurations {
			medians[i] = of[r].quantile(0.5)
		}
	}
	return medians
}

// speed is what factor a relay deserves by the time that it takes, against the
// quickest of the others.
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

// seatTaken reports whether a connection of r is to end, so that another relay has
// its seat. The caller holds mu.
func (o *Sender) seatTaken(r *relay) bool {
	if r.connections <= r.seats+r.extraSeats || o.connections < o.limits.connections() {
		return false
	}
	return o.relays.next(o.options.Clock.Now(), false) != nil
}

// wakeOne has an idle connection look for a job: of the relay whose turn it is
// by weight, which among relays that all have time shares out the messages. What was
// passed on it may not be allowed to have: for that others look too. The caller
// holds mu.
func (o *Sender) wakeOne() {
	var next *relay
	total := 0.0
	for _, r := range o.relays {
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
		return // whoever is busy comes by itself
	}
	next.credit -= total
	o.wake(next)
	o.wakeForFailover()
}

// wake has the connection of a relay look for a job that has been idle for longest.
// It counts as one that comes, so that none is made in its place. The caller holds
// mu.
func (o *Sender) wake(r *relay) {
	d := r.idle[0]
	r.idle = slices.Delete(r.idle, 0, 1)
	if d.busyLane == idleLane {
		d.busyLane = comingLane
		o.busy.change(comingLane, +1)
	}
	d.wake <- struct{}{}
}

// configure puts the relays of new settings in force. Connections of the old
// ones finish their message and close. The caller holds mu.
func (o *Sender) configure(wanted []RelaySettings) {
	old := o.relays
	o.relays = nil
	for _, s := range wanted {
		i := slices.IndexFunc(old, func(r *relay) bool { return r.Name == s.Name })
		r := &relay{factor: 1}
		if i >= 0 {
			r = old[i]
		}
		r.RelaySettings = s
		r.reset()
		o.relays = append(o.relays, r)
	}
	for _, r := range old {
		r.cancel()
		r.stopTimer()
	}
	for _, r := range o.relays {
		r.ctx, r.cancel = context.WithCancel(o.ctx)
	}
	o.assignSeats()
}

// Drain lets nothing more leave by a relay, or again: what is on the wire ends.
// It reports whether there is such a relay.
func (o *Sender) Drain(name string, drained bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.relays, func(r *relay) bool { return r.Name == name })
	if i < 0 {
		return false
	}
	r := o.relays[i]
	if r.Drained == drained {
		return true
	}
	r.Drained = drained
	r.reset()
	r.cancel()
	r.ctx, r.cancel = context.WithCancel(o.ctx)
	o.assignSeats()
	o.wakeForFailover()
	o.openConnections()
	return true
}

// RelaySettings are what one next hop of a channel is.
type RelaySettings struct {
	Name          string // unique within the channel
	Driver        driver.Driver
	Weight        int  // its share of the connections, against those of the others; 0: none
	Drained       bool // an operator lets nothing leave by it
	ManyReceivers bool // it stands for receivers of all kinds: what one of them answers says nothing of the others
}

// relay is a next hop as its connections fare. It is guarded by the outlet.
type relay struct {
	RelaySettings
	connections int
	seats       int          // connections that it may have
	extraSeats  int          // and others, in place of those that wait for slow destinations
	idle        []*connQueue // connections that wait for a job, the first one longest
	credit      float64      // who is woken next: the highest

	factor   float64 // of the weight, from least to 1: less while the relay fails or is slow
	window   outcomeWindow
	accepted int64
	fast     int64 // messages that it did not take long for
	errors   int64 // messages lost or refused for reasons of its own, and connections lost

	refusals     int // messages refused in a row for reasons of its own
	failures     int // connections lost in a row without another answer
	lastError    string
	lastErrorAt  time.Time
	blockedUntil time.Time // no new connection before that
	unblockTimer *time.Timer

	ctx    context.Context // of the connections of the settings in force
	cancel context.CancelFunc
}

// down reports whether the relay is out of order as far as is known: one lost
// connection does not say so.
func (r *relay) down() bool { return r.failures > 1 }

// used reports whether messages are meant to leave by the relay.
func (r *relay) used() bool { return r.Weight > 0 && !r.Drained }

// weight is the configured weight as far as the relay deserves it.
func (r *relay) weight() float64 { return float64(r.Weight) * r.factor }

// reset forgets what went wrong: settings have changed.
func (r *relay) reset() { r.refusals, r.failures, r.blockedUntil, r.factor = 0, 0, time.Time{}, 1 }

// stopTimer ends what the relay has under way beside its connections.
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
	return r.failures == 0 || r.connections == 0 // one scout while the relay is in doubt
}

// openConnections starts as many connections as what waits can use, and one for each relay
// that has none: so that it is known how all of them fare. The caller holds mu.
func (o *Sender) openConnections() {
	if o.ctx.Err() != nil || o.queued() == 0 {
		return
	}
	now := o.options.Clock.Now()
	if o.limits.closedUntil.Sub(now) > o.settings.IdleTimeout {
		return // a connection would only wait; the alarm is set
	}
	for _, r := range o.relays {
		r.extraSeats = o.limits.extraConnections()
	}
	wanted := o.missingConnections()
	for o.connections < o.limits.connections() {
		r := o.relays.next(now, wanted <= 0)
		if r == nil {
			break
		}
		wanted--
		r.connections++
		o.connections++
		o.busy.change(comingLane, +1)
		driver, ctx := r.Driver, r.ctx
		o.running.Go(func() { o.connect(ctx, r, driver) })
	}
	for _, r := range o.relays {
		if pause := r.blockedUntil.Sub(now); pause > 0 && r.used() && r.unblockTimer == nil {
			r.unblockTimer = time.AfterFunc(pause, func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				r.unblockTimer = nil
				o.openConnections()
			})
		}
	}
}

// connect runs one connection to its end.
func (o *Sender) connect(ctx context.Context, r *relay, driver driver.Driver) {
	d := newConnQueue(o, r)
	err := serve(ctx, driver, d)
	d.abandon(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.countIdle(d)
	r.connections--
	o.connections--
	if o.queued() > 0 {
		o.wakeOne() // the part of a lane may have become free
	}
	if err != nil && ctx.Err() == nil {
		o.connectionLost(r, err.Error())
	}
	o.openConnections()
	if d.closing {
		o.wakeOne() // it may have been woken for a job that it left to others
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

// refusalsInARow is how many messages a relay may refuse in a row for reasons of
// its own before that counts as a lost connection, where there are other relays.
const refusalsInARow = 5

// connectionLost counts a broken connection. The caller holds mu.
func (o *Sender) connectionLost(r *relay, why string) {
	now := o.options.Clock.Now()
	r.lastError, r.lastErrorAt = why, now
	if now.Before(r.blockedUntil) {
		return // all connections are lost together when a relay goes: that is one failure
	}
	r.failures++
	r.errors++
	r.window.at(now).errors++
	r.window.at(now).answers++
	if r.failures == 1 {
		o.options.Logger.Warn("connection lost", "channel", o.options.Name, "relay", r.Name, "error", why)
		return
	}
	pause := min(longestPause, firstPause<<min(r.failures-2, 10))
	pause = pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1))
	r.blockedUntil = now.Add(pause)
	r.factor = max(minFactor, r.factor/2)
	o.assignSeats()
	o.wakeForFailover() // what this relay was to take is anybody's again
}

// countOutcome counts an outcome of a relay. The caller holds mu.
func (o *Sender) countOutcome(r *relay, outcome *driver.Outcome, took time.Duration, now time.Time) {
	part := r.window.at(now)
	part.answers++
	if r.ManyReceivers || !aboutRelay(outcome) {
		r.refusals = 0
		if r.failures > 0 {
			r.failures = 0
			o.assignSeats()
		}
		if outcome.Verdict == driver.Accepted {
			r.accepted++
			part.durations.count(took)
		}
		o.adjustWeights(now)
		return
	}
	r.errors++
	part.errors++
	r.lastError, r.lastErrorAt = reasonOf(outcome), now
	if outcome.Verdict != driver.Lost { // the connection will say so itself
		r.refusals++
	}
	if r.refusals >= refusalsInARow && len(o.relays) > 1 {
		r.refusals = 0
		o.connectionLost(r, r.lastError)
	}
	o.adjustWeights(now)
}

// aboutRelay reports whether an outcome is about the relay and not about the message.
func aboutRelay(outcome *driver.Outcome) bool {
	switch outcome.Verdict {
	case driver.Lost:
		return true
	case driver.Temporary:
		switch outcome.Class {
		case fanfare.ClassThrottled, fanfare.ClassBusy, fanfare.ClassNetwork, fanfare.ClassBlocked, fanfare.ClassDenied:
			return true
		}
		return outcome.Code == 421 // the peer ends the session (RFC 5321, section 3.8)
	}
	return false
}

func reasonOf(outcome *driver.Outcome) string {
	if outcome.Code == 0 {
		return outcome.Text
	}
	return fmt.Sprintf("%d %s", outcome.Code, outcome.Text)
}
