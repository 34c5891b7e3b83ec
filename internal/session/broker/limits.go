package broker

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
)

// The intervals of the limit loop.
const (
	checkEvery    = time.Second
	minCheck      = 2 * time.Millisecond
	skipRetention = 10 * time.Minute // of the memory of lost connections
	maxSkips      = maxInstances
)

// limitLoop ends tasks at their timeout and sessions at theirs, and ends the pauses of instances.
func (b *Broker) limitLoop() {
	last := b.Clock.Now()
	for {
		wait := checkEvery
		now := b.Clock.Now()
		for _, p := range b.allPools() {
			p.mu.Lock()
			if p.deadline != 0 {
				wait = min(wait, time.UnixMicro(p.deadline).Sub(now))
			}
			p.mu.Unlock()
		}
		select {
		case <-b.ctx.Done():
			return
		case <-b.sooner:
		case <-time.After(max(wait, minCheck)):
		}
		now = b.Clock.Now()
		whole := now.Sub(last) >= checkEvery || now.Before(last)
		if whole {
			last = now
		}
		var endings []ending
		for _, p := range b.allPools() {
			endings = append(endings, p.check(now, whole)...)
		}
		// The log may be slow or away, and tasks must end at their timeout all the same.
		if len(endings) > 0 && b.expiring.CompareAndSwap(false, true) {
			b.loops.Go(func() {
				b.endSessions(endings)
				b.expiring.Store(false)
			})
		}
	}
}

// An ending is a session that has reached a limit.
type ending struct {
	s      *openSession
	reason string
}

// check ends what is due in a pool, and returns the sessions that have reached a limit. Sessions are checked if whole is set.
func (p *pool) check(at time.Time, whole bool) (endings []ending) {
	now := micros(at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadline != 0 && now >= p.deadline {
		p.deadlines(now)
	}
	if whole {
		p.updateDemand(at)
		p.drainOld(now)
		for name, s := range p.skips {
			if at.Sub(s.lost) > skipRetention || len(p.skips) > maxSkips {
				delete(p.skips, name)
			}
		}
		for _, s := range p.sessions {
			o := &s.record.Options
			switch {
			case at.Sub(s.record.OpenedAt) >= o.TotalTimeout:
				endings = append(endings, ending{s, fmt.Sprintf("it reached its total timeout of %s", o.TotalTimeout)})
			case s.connected > 0 || s.outstanding() > 0:
				s.idleSince = now
			case now-s.idleSince >= o.IdleTimeout.Microseconds():
				endings = append(endings, ending{s, fmt.Sprintf("it reached its idle timeout of %s", o.IdleTimeout)})
			}
			for _, c := range s.clients {
				if c.confirmed {
					c.changed = true
					c.soil()
				}
			}
			p.touch(s) // a read of its requests may have failed
		}
	}
	p.dispatch(now)
	p.finish()
	return endings
}

// endSessions ends sessions that have reached a limit. A failure is repeated with the next check.
func (b *Broker) endSessions(endings []ending) {
	for _, e := range endings {
		ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
		if err := b.End(ctx, e.s.record.Service, e.s.id, false, e.reason); err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
			b.Logger.Warn("cannot end a session that has reached a timeout; retrying", "session", e.s.id, "error", err)
		}
		cancel()
	}
}

// deadlines ends the tasks and pauses whose time has come, and finds the next one.
func (p *pool) deadlines(now int64) {
	p.deadline = 0
	for _, i := range p.instances {
		if i.skippedTo != 0 {
			if i.skippedTo > now {
				p.expect(i.skippedTo)
			} else {
				i.skippedTo = 0
				p.refresh(i)
			}
		}
		changed := false
		for k := range i.slots {
			t := &i.slots[k]
			switch {
			case t.deadline == 0:
			case t.deadline > now:
				p.expect(t.deadline)
			case t.state == running:
				p.retry(i, t, "timeout", fault("timeout", fmt.Sprintf("the task exceeded its timeout of %s", time.Duration(t.timeout)*time.Millisecond)), now)
				p.cancel(i, t)
			case t.state == cancelled:
				p.release(i, t)
				changed = true
			}
		}
		if changed {
			p.start(i, now)
			p.refresh(i)
		}
	}
}

// drainOld asks one instance with an old version to leave, if none is leaving. An instance that does not leave within the stop
// timeout is not waited for.
func (p *pool) drainOld(now int64) {
	stop := p.def.StopTimeout
	if stop <= 0 {
		stop = session.DefaultStopTimeout
	}
	var old *instance
	for _, i := range p.instances {
		if i.draining && now-i.drainedAt < stop.Microseconds() {
			if p.defined {
				return
			}
			continue
		}
		if !i.draining && (i.version != p.def.Version || !p.defined) {
			old = i
			if !p.defined {
				p.drain(i, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("worker %s was removed from the configuration", p.key.worker), Hint: "stop this instance"})
			}
		}
	}
	if old != nil && p.defined {
		p.drain(old, &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("worker %s has the new version %q, but this instance was started with version %q", p.key.worker, p.def.Version, old.version),
			Hint: "start the instance again; an agent does this automatically"})
	}
}

// DefinitionsChanged reads the definitions of all workers again. New timeouts and limits take effect; instances of an old
// version leave one after the other.
func (b *Broker) DefinitionsChanged() {
	for _, p := range b.allPools() {
		d, known := b.Definition(p.key.service, p.key.worker)
		p.mu.Lock()
		if known {
			p.define(d, true)
		} else {
			p.defined = false
		}
		p.drainOld(b.now())
		for _, i := range p.instances {
			p.refresh(i)
		}
		p.dispatch(b.now())
		p.finish()
		p.mu.Unlock()
	}
}
