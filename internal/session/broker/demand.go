package broker

import (
	"cmp"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/session"
)

// idleBeforeShrink is how long fewer instances must be enough before fewer are wanted.
const idleBeforeShrink = 30 * time.Second

// demand is the wanted number of instances of a worker. It rises at once.
type demand struct {
	wanted int
	below  time.Time // since when fewer would be enough; zero: they are not
	most   int       // the largest number that was needed since then
}

// needed is the number of instances that the sessions need now.
func (p *pool) needed() int {
	perInstance := int64(p.def.Concurrency) * int64(1+p.prefetch())
	total := 0
	for _, s := range p.sessions {
		o := &s.record.Options
		n := int(min((s.outstanding()+perInstance-1)/perInstance, maxInstances))
		n = max(n, o.MinInstances)
		if o.MaxInstances > 0 {
			n = min(n, o.MaxInstances)
		}
		total += n
	}
	return min(total, maxInstances)
}

// updateDemand lets the demand follow the need.
func (p *pool) updateDemand(now time.Time) {
	d, needed := &p.demand, p.needed()
	switch {
	case needed >= d.wanted:
		*d = demand{wanted: needed}
	case d.below.IsZero():
		d.below, d.most = now, needed
	default:
		d.most = max(d.most, needed)
		if now.Sub(d.below) >= idleBeforeShrink {
			*d = demand{wanted: d.most}
			if needed < d.most {
				d.below, d.most = now, needed
			}
		}
	}
}

// connected is the number of instances that are not leaving.
func (p *pool) connected() int {
	n := 0
	for _, i := range p.instances {
		if !i.draining {
			n++
		}
	}
	return n
}

// Demand returns how many instances are wanted of each worker, by service and name.
func (b *Broker) Demand() []session.Demand {
	var all []session.Demand
	for _, p := range b.allPools() {
		p.mu.Lock()
		p.updateDemand(b.Clock.Now())
		one := session.Demand{Service: p.key.service, Worker: p.key.worker, Instances: p.demand.wanted}
		if !p.defined {
			one.Instances = 0
		}
		one.Connected = p.connected()
		p.mu.Unlock()
		all = append(all, one)
	}
	slices.SortFunc(all, func(x, y session.Demand) int {
		return cmp.Or(cmp.Compare(x.Service, y.Service), cmp.Compare(x.Worker, y.Worker))
	})
	return all
}
