//go:build crashsteps

package chaos

import (
	"sync"
	"syscall"
	"time"
)

// A runner carries out a schedule, and adds up how many duplicates its faults permit.
type runner struct {
	c       *cluster
	all     []fault
	open    []openFault
	ending  sync.WaitGroup
	allowed int     // duplicates because of interrupted connections
	frozen  int     // duplicates because of frozen nodes
	pauses  []pause // of nodes with connections
	done    map[string]int
}

// An openFault is a fault that has begun.
type openFault struct {
	until time.Time
	end   func()
}

// run carries out the schedule until the end of the test's duration, and ends all faults.
func (r *runner) run(length time.Duration) {
	begin := time.Now()
	next := 0
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for time.Since(begin) < length {
		<-look.C
		r.close(false)
		for next < len(r.all) && time.Since(begin) >= r.all[next].at {
			r.begin(&r.all[next])
			next++
		}
	}
	r.close(true)
	r.ending.Wait()
}

// close ends the faults whose time has come, or all.
func (r *runner) close(all bool) {
	kept := r.open[:0]
	for _, f := range r.open {
		if all || !time.Now().Before(f.until) {
			f.end()
		} else {
			kept = append(kept, f)
		}
	}
	r.open = kept
}

// begin begins a fault, unless its node already has one.
func (r *runner) begin(f *fault) {
	c := r.c
	target := f.target
	if target == leader {
		target = c.leader().name
	}
	var n *node
	if target != "" {
		n = c.named(target)
	}
	if n != nil && !n.faulted.CompareAndSwap(false, true) {
		c.t.Logf("%s: %s already has a fault", f, target)
		return
	}
	c.t.Logf("%6.1fs: %s (%s)", c.elapsed(), f, target)
	r.done[f.kind]++
	end := func() {}
	switch f.kind {
	case kill:
		r.allowed += c.interrupted(n)
		n.end(syscall.SIGKILL)
		end = n.run
	case stop:
		r.allowed += c.interrupted(n)
		n.end(syscall.SIGTERM)
		end = func() { n.ended(); n.run() }
	case freeze:
		r.frozen += c.interrupted(n)
		from := time.Now()
		n.signal(syscall.SIGSTOP)
		end = func() {
			r.pauses = append(r.pauses, pause{from, time.Now(), n.open()})
			r.frozen += c.interrupted(n)
			n.signal(syscall.SIGCONT)
		}
	case cut:
		r.allowed += c.interrupted(n)
		for _, p := range n.link(f.link) {
			p.cut(f.way)
		}
		end = func() {
			for _, p := range n.link(f.link) {
				p.heal()
			}
		}
	case slow:
		for _, p := range n.link(f.link) {
			p.slow(f.delay)
		}
		end = func() {
			for _, p := range n.link(f.link) {
				p.heal()
			}
		}
	case promote:
		r.allowed += c.interrupted(c.leader())
		c.primary.Kill()
		end = func() {
			c.replica.Administer("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_promote(false)")
		}
	case drop:
		r.allowed += c.relay.cut()
	case hold:
		c.relay.hold()
		end = c.relay.release
	}
	over := end
	switch {
	case f.kind == stop: // it takes as long as the node sends
		over = func() { r.ending.Go(func() { end(); n.faulted.Store(false) }) }
	case n != nil:
		over = func() { end(); n.faulted.Store(false) }
	}
	r.open = append(r.open, openFault{time.Now().Add(f.length), over})
}

// interrupted returns how many connections a fault of a node can interrupt. A fault of the leader can interrupt those of
// all nodes.
func (c *cluster) interrupted(n *node) int {
	if n != c.leader() {
		return n.open()
	}
	all := 0
	for _, other := range c.nodes {
		all += other.open()
	}
	return all
}

// link returns the proxies of a link.
func (n *node) link(name string) []*proxy {
	switch name {
	case postgresLink:
		return n.databases[:]
	case natsLink:
		return []*proxy{n.nats}
	}
	return []*proxy{n.front}
}

// cut cuts a link in one of the ways.
func (p *proxy) cut(way string) {
	switch way {
	case ways[0]:
		p.hold(toServer)
	case ways[1]:
		p.hold(fromServer)
	case ways[2]:
		p.hold(toServer, fromServer)
	default:
		p.refuse()
	}
}
