//go:build crashsteps

package chaos

import (
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A runner carries out a schedule, and adds up how many duplicates its faults permit.
type runner struct {
	c       *cluster
	all     []fault
	open    []openFault
	ending  sync.WaitGroup
	allowed map[string]int // duplicates because of interrupted connections, by node
	pauses  []pause        // of nodes with connections
	done    map[string]int
	skipped int
}

// An openFault is a fault that has begun.
type openFault struct {
	until  time.Time
	target *atomic.Bool // nil: none
	end    func()
}

// run carries out the schedule until the end of the test's duration, and ends all faults.
func (r *runner) run(length time.Duration) {
	begin := time.Now()
	next := 0
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for time.Since(begin) < length {
		<-look.C
		r.close(func(f *openFault) bool { return !time.Now().Before(f.until) })
		r.c.revive()
		for next < len(r.all) && time.Since(begin) >= r.all[next].at {
			r.begin(&r.all[next])
			next++
		}
	}
	r.close(func(*openFault) bool { return true })
	r.ending.Wait()
	r.c.revive()
}

// close ends some faults.
func (r *runner) close(over func(*openFault) bool) {
	var kept []openFault
	for _, f := range r.open {
		if over(&f) {
			f.end()
		} else {
			kept = append(kept, f)
		}
	}
	r.open = kept
}

// begin begins a fault, unless its target already has one.
func (r *runner) begin(f *fault) {
	c := r.c
	var n *node
	var b *bus
	var m *machine
	name := f.target
	switch i := slices.IndexFunc(c.buses, func(b *bus) bool { return b.machine.name == name }); {
	case name == "":
	case name == postgres:
		if f.kind == promote {
			r.close(func(f *openFault) bool { return f.target == &c.primary.machine.faulted })
		}
		m = c.database().machine
	case i >= 0:
		b = c.buses[i]
		m = b.machine
	case name == leader:
		n = c.leader()
		m = n.machine
	default:
		n = c.named(name)
		m = n.machine
	}
	if f.target == postgres && !c.database().Running() {
		c.t.Logf("%s: %s does not run", f, m.name)
		r.skipped++
		return
	}
	if m != nil && !m.faulted.CompareAndSwap(false, true) {
		c.t.Logf("%s: %s already has a fault", f, m.name)
		r.skipped++
		return
	}
	on := ""
	if m != nil {
		on = m.name
	}
	c.t.Logf("%6.1fs: %s (%s)", c.elapsed(), f, on)
	r.done[f.title()]++
	end, slowly := func() {}, false
	switch {
	case f.target == postgres:
		end = r.atDatabase(f)
	case b != nil:
		end, slowly = r.atBus(f, b)
	case n != nil:
		end, slowly = r.atNode(f, n)
	case f.kind == drop:
		for name, open := range c.relay.cut() {
			r.allowed[name] += open
		}
	case f.kind == hold:
		c.relay.hold()
		end = c.relay.release
	}
	o := openFault{until: time.Now().Add(f.length), end: end}
	if m != nil {
		o.target = &m.faulted
		o.end = func() { end(); m.faulted.Store(false) }
		if slowly {
			o.end = func() { r.ending.Go(func() { end(); m.faulted.Store(false) }) }
		}
	}
	r.open = append(r.open, o)
}

// atNode begins a fault of a node or of its links. It returns the function that ends it, and whether that takes long.
func (r *runner) atNode(f *fault, n *node) (end func(), slowly bool) {
	switch f.kind {
	case kill:
		r.interrupt(n)
		n.end(syscall.SIGKILL)
		return n.run, false
	case stop:
		r.interrupt(n)
		n.end(syscall.SIGTERM)
		return func() { n.ended(); n.run() }, true // it takes as long as the node sends
	case freeze:
		r.interrupt(n)
		from := time.Now()
		n.signal(syscall.SIGSTOP)
		return func() {
			r.pauses = append(r.pauses, pause{n.name, from, time.Now(), n.open()})
			r.interrupt(n)
			n.signal(syscall.SIGCONT)
		}, false
	case cut:
		r.interrupt(n)
		return cutLinks(n.links(f.link), f.way), false
	case unplug:
		r.interrupt(n)
		n.machine.unplug()
		return n.machine.plug, false
	case fill:
		r.interrupt(n)
		n.machine.fill(f.leave)
		return n.machine.empty, false
	case step:
		stepClock(r.c.t, n.step, f.seconds)
		return func() { stepClock(r.c.t, n.step, 0) }, false
	case slow:
		links := n.links(f.link)
		for _, l := range links {
			if l.proxy != nil {
				l.proxy.slow(f.delay)
			}
		}
		return func() {
			for _, l := range links {
				if l.proxy != nil {
					l.proxy.heal()
				}
			}
		}, false
	}
	r.c.t.Errorf("no node can have the fault %s", f)
	return func() {}, false
}

// atBus begins a fault of a NATS server.
func (r *runner) atBus(f *fault, b *bus) (end func(), slowly bool) {
	switch f.kind {
	case kill:
		b.end(syscall.SIGKILL)
		return b.run, false
	case stop:
		b.signal(syscall.SIGTERM)
		return func() { b.end(syscall.SIGTERM); b.run() }, true
	case freeze:
		b.signal(syscall.SIGSTOP)
		return func() { b.signal(syscall.SIGCONT) }, false
	case unplug:
		b.machine.unplug()
		return b.machine.plug, false
	case fill: // a server that could not write must be restarted
		b.machine.fill(0)
		return func() { b.machine.empty(); b.end(syscall.SIGTERM); b.run() }, true
	}
	r.c.t.Errorf("no NATS server can have the fault %s", f)
	return func() {}, false
}

// atDatabase begins a fault of the database that accepts writes.
func (r *runner) atDatabase(f *fault) (end func()) {
	c, d := r.c, r.c.database()
	if f.kind != step {
		r.interrupt(c.leader())
	}
	switch f.kind {
	case promote:
		d.killed = true
		d.Kill()
		return func() {
			c.replica.Administer("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_promote(false)")
			c.mu.Lock()
			defer c.mu.Unlock()
			c.writer = c.replica
		}
	case freeze:
		d.Freeze()
		return d.Thaw
	case unplug:
		d.machine.unplug()
		return d.machine.plug
	case fill:
		d.machine.fill(0)
		return d.machine.empty
	case step:
		stepClock(c.t, d.step, f.seconds)
		return func() { stepClock(c.t, d.step, 0) }
	}
	c.t.Errorf("PostgreSQL cannot have the fault %s", f)
	return func() {}
}

// interrupt permits a duplicate for each connection that a fault of a node can interrupt. A fault of the leader can interrupt
// those of all nodes.
func (r *runner) interrupt(n *node) {
	all := []*node{n}
	if n == r.c.leader() {
		all = r.c.nodes
	}
	for _, n := range all {
		r.allowed[r.c.sender(n)] += n.open()
	}
}

// sender returns the name under which the relay knows a node.
func (c *cluster) sender(n *node) string {
	if isolated {
		return n.name
	}
	return ""
}

// links returns the links of a node to or from one kind of server.
func (n *node) links(name string) []*link {
	switch name {
	case postgresLink:
		return n.databases
	case natsLink:
		return n.nats
	case relayLink:
		return n.relay
	}
	return n.front
}

// cutLinks cuts links in one of the ways, and returns a function that ends this. If the test is isolated, packets are lost. Otherwise,
// the proxies hold the data.
func cutLinks(links []*link, way string) (end func()) {
	directions := map[string][]int{ways[0]: {toServer}, ways[1]: {fromServer}, ways[2]: {toServer, fromServer}}[way]
	var ends []func()
	for _, l := range links {
		switch {
		case isolated && directions != nil:
			ends = append(ends, l.wire.lose(directions...))
		case l.proxy == nil:
		case directions != nil:
			l.proxy.hold(directions...)
			ends = append(ends, l.proxy.heal)
		default:
			l.proxy.refuse()
			ends = append(ends, l.proxy.heal)
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
