package deliver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// RelaySettings are what one next hop of a channel is.
type RelaySettings struct {
	Name    string // unique within the channel
	Driver  driver.Driver
	Weight  int  // its share of the connections, against those of the others; 0: none
	Drained bool // an operator lets nothing leave by it
	Many    bool // it stands for receivers of all kinds: what one of them answers says nothing of the others
}

// relay is a next hop as its connections fare. It is guarded by the outlet.
type relay struct {
	RelaySettings
	connections int
	seats       int          // connections that it may have
	lent        int          // and others, in place of those that wait for slow destinations
	idlers      []*connQueue // connections that wait for a job, the first one longest
	turn        float64      // who is woken next: the highest

	factor float64 // of the weight, from least to 1: less while the relay fails or is slow
	window window
	taken  int64
	quick  int64 // messages that it did not take long for
	errors int64 // messages lost or refused for reasons of its own, and connections lost

	refusals    int // messages refused in a row for reasons of its own
	failures    int // connections lost in a row without another answer
	lastError   string
	lastErrorAt time.Time
	blockedTill time.Time // no new connection before that
	unblock     *time.Timer

	ctx   context.Context // of the connections of the settings in force
	renew context.CancelFunc
}

// down reports whether the relay is out of order as far as is known: one lost
// connection does not say so.
func (r *relay) down() bool { return r.failures > 1 }

// used reports whether messages are meant to leave by the relay.
func (r *relay) used() bool { return r.Weight > 0 && !r.Drained }

// weight is the configured weight as far as the relay deserves it.
func (r *relay) weight() float64 { return float64(r.Weight) * r.factor }

// forgive forgets what went wrong: settings have changed.
func (r *relay) forgive() { r.refusals, r.failures, r.blockedTill, r.factor = 0, 0, time.Time{}, 1 }

// calm ends what the relay has under way beside its connections.
func (r *relay) calm() {
	if r.unblock != nil {
		r.unblock.Stop()
		r.unblock = nil
	}
}

// wishes reports whether the relay may open a connection now.
func (r *relay) wishes(now time.Time) bool {
	if !r.used() || r.connections >= r.seats+r.lent || now.Before(r.blockedTill) {
		return false
	}
	return r.failures == 0 || r.connections == 0 // one scout while the relay is in doubt
}

// spawn starts as many connections as what waits can use, and one for each relay
// that has none: so that it is known how all of them fare. The caller holds mu.
func (o *Sender) spawn() {
	if o.ctx.Err() != nil || o.queued() == 0 {
		return
	}
	now := o.options.Clock.Now()
	if o.limits.closedUntil.Sub(now) > o.settings.IdleTimeout {
		return // a connection would only wait; the alarm is set
	}
	for _, r := range o.relays {
		r.lent = o.limits.lent()
	}
	wanted := o.lacking()
	for o.connections < o.limits.connections() {
		r := o.relays.next(now, wanted <= 0)
		if r == nil {
			break
		}
		wanted--
		r.connections++
		o.connections++
		o.busy.change(coming, +1)
		driver, ctx := r.Driver, r.ctx
		o.running.Go(func() { o.connect(ctx, r, driver) })
	}
	for _, r := range o.relays {
		if pause := r.blockedTill.Sub(now); pause > 0 && r.used() && r.unblock == nil {
			r.unblock = time.AfterFunc(pause, func() {
				o.mu.Lock()
				defer o.mu.Unlock()
				r.unblock = nil
				o.spawn()
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
	o.uncount(d)
	r.connections--
	o.connections--
	if o.queued() > 0 {
		o.wakeOne() // the part of a lane may have become free
	}
	if err != nil && ctx.Err() == nil {
		o.lost(r, err.Error())
	}
	o.spawn()
	if d.over {
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

// lost counts a broken connection. The caller holds mu.
func (o *Sender) lost(r *relay, why string) {
	now := o.options.Clock.Now()
	r.lastError, r.lastErrorAt = why, now
	if now.Before(r.blockedTill) {
		return // all connections are lost together when a relay goes: that is one failure
	}
	r.failures++
	r.errors++
	r.window.at(now).wrong++
	r.window.at(now).answers++
	if r.failures == 1 {
		o.options.Logger.Warn("connection lost", "channel", o.options.Name, "relay", r.Name, "error", why)
		return
	}
	pause := min(longestPause, firstPause<<min(r.failures-2, 10))
	pause = pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1))
	r.blockedTill = now.Add(pause)
	r.factor = max(leastFactor, r.factor/2)
	o.allot()
	o.wakeForPassed() // what this relay was to take is anybody's again
}

// answered counts an outcome of a relay. The caller holds mu.
func (o *Sender) answered(r *relay, outcome *driver.Outcome, took time.Duration, now time.Time) {
	part := r.window.at(now)
	part.answers++
	if r.Many || !itsOwn(outcome) {
		r.refusals = 0
		if r.failures > 0 {
			r.failures = 0
			o.allot()
		}
		if outcome.Verdict == driver.Accepted {
			r.taken++
			part.took.count(took)
		}
		o.judge(now)
		return
	}
	r.errors++
	part.wrong++
	r.lastError, r.lastErrorAt = reasonOf(outcome), now
	if outcome.Verdict != driver.Lost { // the connection will say so itself
		r.refusals++
	}
	if r.refusals >= refusalsInARow && len(o.relays) > 1 {
		r.refusals = 0
		o.lost(r, r.lastError)
	}
	o.judge(now)
}

// itsOwn reports whether an outcome is about the relay and not about the message.
func itsOwn(outcome *driver.Outcome) bool {
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
