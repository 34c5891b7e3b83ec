package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// A fault begins at a time after the start, and ends after a duration.
type fault struct {
	at, length time.Duration
	kind       string
	target     string // a node, a NATS server, postgres, or leader: the node that leads at that time; "" if the fault concerns the relay
	link       string // of the target
	way        string // how the link is cut
	delay      time.Duration
	leave      int64 // free bytes of a disk that is filled
	seconds    int   // step of a clock
}

// The kinds of faults.
const (
	kill    = "kill"    // SIGKILL, and a start at the end
	stop    = "stop"    // SIGTERM, and a start at the end
	freeze  = "freeze"  // SIGSTOP, and SIGCONT at the end
	cut     = "cut"     // a link is cut in some way
	slow    = "slow"    // a link delays its data
	unplug  = "unplug"  // a machine has no network
	fill    = "fill"    // a disk has little space left, or none
	step    = "step"    // a clock is stepped, and stepped back at the end
	promote = "promote" // the primary of PostgreSQL is killed, and its standby is promoted at the end
	drop    = "drop"    // the relay closes all connections
	hold    = "hold"    // the relay does not reply
)

// Targets of faults.
const (
	leader   = "leader"   // the node that leads
	postgres = "postgres" // the server that accepts writes
)

// The links of a node.
const (
	postgresLink = "postgres"
	natsLink     = "nats"
	nodeLink     = "node" // connections of other nodes to this one
	relayLink    = "relay"
)

// The ways to cut a link.
var ways = []string{"to the server", "from the server", "both ways", "reset"}

// title names the kind of fault in a report.
func (f *fault) title() string {
	switch {
	case f.target == postgres:
		return f.kind + " postgres"
	case strings.HasPrefix(f.target, "nats-"):
		return f.kind + " nats"
	case f.link != "":
		return f.kind + " link to " + f.link
	}
	return f.kind
}

func (f *fault) String() string {
	text := fmt.Sprintf("%6.1fs %s", f.at.Seconds(), f.kind)
	for _, part := range []string{f.target, f.link, f.way} {
		if part != "" {
			text += " " + part
		}
	}
	if f.delay > 0 {
		text += " by " + f.delay.String()
	}
	if f.seconds != 0 {
		text += fmt.Sprintf(" by %+d s", f.seconds)
	}
	if f.leave > 0 {
		text += fmt.Sprintf(" except %d MB", f.leave>>20)
	}
	return fmt.Sprintf("%s for %.1fs", text, f.length.Seconds())
}

// belowFloorBytes is less free space than the setting disk_floor requires.
const belowFloorBytes = 32 << 20

// A setup is what the faults of a schedule can concern.
type setup struct {
	nodes, delivering []string
	buses             []string // NATS servers in their own processes
	isolated          bool     // machines have their own networks and disks
	databaseClock     bool     // the clock of PostgreSQL can be stepped
}

const (
	firstFault = 8 * time.Second
	rest       = 12 * time.Second // without a new fault, at the end
)

// schedule returns the faults of a run, in order. Equal arguments give equal schedules.
func schedule(seed uint64, length time.Duration, s *setup) []fault {
	r := rand.New(rand.NewPCG(seed, 1))
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
	var all []fault
	deck := []fault{{kind: kill, target: leader}} // each run has a change of the leader
	for at := firstFault; at < length-rest; at += between(3*time.Second, 9*time.Second) {
		if len(deck) == 0 {
			deck = s.kinds(r)
		}
		f := deck[0]
		deck = deck[1:]
		f.at = at.Round(100 * time.Millisecond)
		switch {
		case f.kind == kill || f.kind == stop:
			f.length = between(500*time.Millisecond, 6*time.Second)
		case f.kind == freeze && f.target == leader:
			f.length = between(5*time.Second, 20*time.Second)
		case f.kind == drop:
			f.length = 0
		default:
			f.length = between(time.Second, 20*time.Second)
		}
		f.length = f.length.Round(100 * time.Millisecond)
		all = append(all, f)
	}
	middle := length/2 + between(0, length/10)
	all = append(all, fault{at: middle.Round(100 * time.Millisecond), length: between(time.Second, 8*time.Second).Round(100 * time.Millisecond), kind: promote, target: postgres})
	slices.SortStableFunc(all, func(a, b fault) int { return int(a.at - b.at) })
	return all
}

// kinds returns one fault of each kind, in random order.
func (s *setup) kinds(r *rand.Rand) []fault {
	one := func(of []string) string { return of[r.IntN(len(of))] }
	way := func() string { return ways[r.IntN(len(ways))] }
	wait := func() time.Duration { return time.Duration(50+r.IntN(350)) * time.Millisecond }
	seconds := func() int { return 4*r.IntN(2) - 2 }
	deck := []fault{
		{kind: kill, target: leader}, {kind: kill, target: one(s.delivering)}, {kind: kill, target: one(s.nodes)},
		{kind: stop, target: leader}, {kind: stop, target: one(s.nodes)},
		{kind: freeze, target: leader}, {kind: freeze, target: one(s.delivering)}, {kind: freeze, target: one(s.nodes)}, {kind: freeze, target: postgres},
		{kind: cut, target: leader, link: postgresLink, way: way()}, {kind: cut, target: leader, link: natsLink, way: way()},
		{kind: cut, target: leader, link: nodeLink, way: way()}, {kind: cut, target: one(s.nodes), link: postgresLink, way: way()},
		{kind: slow, target: leader, link: postgresLink, delay: wait() / 4}, {kind: slow, target: leader, link: natsLink, delay: wait()},
		{kind: slow, target: leader, link: nodeLink, delay: wait()},
		{kind: step, target: leader, seconds: seconds()}, {kind: step, target: one(s.nodes), seconds: seconds()},
		{kind: drop}, {kind: hold},
	}
	if len(s.buses) > 0 {
		deck = append(deck, fault{kind: kill, target: one(s.buses)}, fault{kind: stop, target: one(s.buses)}, fault{kind: freeze, target: one(s.buses)})
	}
	if s.databaseClock {
		deck = append(deck, fault{kind: step, target: postgres, seconds: 2}, fault{kind: step, target: postgres, seconds: -2})
	}
	if s.isolated {
		deck = append(deck, fault{kind: cut, target: one(s.delivering), link: relayLink, way: ways[r.IntN(3)]},
			fault{kind: unplug, target: leader}, fault{kind: unplug, target: one(s.delivering)}, fault{kind: unplug, target: one(s.nodes)}, fault{kind: unplug, target: postgres},
			fault{kind: fill, target: leader}, fault{kind: fill, target: leader, leave: belowFloorBytes}, fault{kind: fill, target: one(s.nodes)}, fault{kind: fill, target: postgres})
		if len(s.buses) > 0 {
			deck = append(deck, fault{kind: unplug, target: one(s.buses)}, fault{kind: fill, target: one(s.buses)})
		}
	}
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

func TestASeedGivesTheSameSchedule(t *testing.T) {
	t.Parallel()
	text := func(seed uint64) string {
		var b strings.Builder
		for _, f := range schedule(seed, 60*time.Minute, &setup{[]string{"a", "b"}, []string{"b"}, []string{"nats-1"}, true, true}) {
			fmt.Fprintln(&b, f.String())
		}
		return b.String()
	}
	one := text(1)
	if one != text(1) || one == text(2) {
		t.Error("a schedule does not follow from its seed")
	}
	for _, want := range []string{kill, stop, freeze, cut, slow, unplug, fill, step, promote, drop, hold, postgresLink, natsLink, nodeLink, relayLink, "nats-1", "by +2 s", "by -2 s", ways[0], ways[1], ways[2], ways[3]} {
		if !strings.Contains(one, " "+want+" ") {
			t.Errorf("the schedule has no %q", want)
		}
	}
	if strings.Count(one, promote) != 1 {
		t.Errorf("the standby is promoted %d times", strings.Count(one, promote))
	}
}
