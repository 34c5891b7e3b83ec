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
	target     string // a node, or leader: the node that leads at that time; "" if the fault concerns no node
	link       string // of the target
	way        string // how the link is cut
	delay      time.Duration
}

// The kinds of faults.
const (
	kill    = "kill"    // SIGKILL, and a start at the end
	stop    = "stop"    // SIGTERM, and a start at the end
	freeze  = "freeze"  // SIGSTOP, and SIGCONT at the end
	cut     = "cut"     // a link is cut in some way
	slow    = "slow"    // a link delays its data
	promote = "promote" // the primary of PostgreSQL is killed, and its standby is promoted at the end
	drop    = "drop"    // the relay closes all connections
	hold    = "hold"    // the relay does not reply
)

// leader is the target of faults at the node that leads.
const leader = "leader"

// The links of a node.
const (
	postgresLink = "postgres"
	natsLink     = "nats"
	nodeLink     = "node" // connections of other nodes to this one
)

// The ways to cut a link.
var ways = []string{"to the server", "from the server", "both ways", "reset"}

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
	return fmt.Sprintf("%s for %.1fs", text, f.length.Seconds())
}

const (
	firstFault = 8 * time.Second
	rest       = 12 * time.Second // without a new fault, at the end
)

// schedule returns the faults of a run, in order. Equal arguments give equal schedules.
func schedule(seed uint64, length time.Duration, nodes, delivering []string) []fault {
	r := rand.New(rand.NewPCG(seed, 1))
	between := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
	var all []fault
	var deck []fault
	for at := firstFault; at < length-rest; at += between(3*time.Second, 9*time.Second) {
		if len(deck) == 0 {
			deck = kinds(r, nodes, delivering)
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
	all = append(all, fault{at: middle.Round(100 * time.Millisecond), length: between(time.Second, 8*time.Second).Round(100 * time.Millisecond), kind: promote})
	slices.SortStableFunc(all, func(a, b fault) int { return int(a.at - b.at) })
	return all
}

// kinds returns one fault of each kind, in random order.
func kinds(r *rand.Rand, nodes, delivering []string) []fault {
	one := func(of []string) string { return of[r.IntN(len(of))] }
	way := func() string { return ways[r.IntN(len(ways))] }
	wait := func() time.Duration { return time.Duration(50+r.IntN(350)) * time.Millisecond }
	deck := []fault{
		{kind: kill, target: leader}, {kind: kill, target: one(delivering)}, {kind: kill, target: one(nodes)},
		{kind: stop, target: leader}, {kind: stop, target: one(nodes)},
		{kind: freeze, target: leader}, {kind: freeze, target: one(delivering)}, {kind: freeze, target: one(nodes)},
		{kind: cut, target: leader, link: postgresLink, way: way()}, {kind: cut, target: leader, link: natsLink, way: way()},
		{kind: cut, target: leader, link: nodeLink, way: way()}, {kind: cut, target: one(nodes), link: postgresLink, way: way()},
		{kind: slow, target: leader, link: postgresLink, delay: wait() / 4}, {kind: slow, target: leader, link: natsLink, delay: wait()},
		{kind: slow, target: leader, link: nodeLink, delay: wait()},
		{kind: drop}, {kind: hold},
	}
	r.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
	return deck
}

func TestASeedGivesTheSameSchedule(t *testing.T) {
	t.Parallel()
	text := func(seed uint64) string {
		var b strings.Builder
		for _, f := range schedule(seed, 30*time.Minute, []string{"a", "b"}, []string{"b"}) {
			fmt.Fprintln(&b, f.String())
		}
		return b.String()
	}
	one := text(1)
	if one != text(1) || one == text(2) {
		t.Error("a schedule does not follow from its seed")
	}
	for _, want := range []string{kill, stop, freeze, cut, slow, promote, drop, hold, postgresLink, natsLink, nodeLink, ways[0], ways[1], ways[2], ways[3]} {
		if !strings.Contains(one, " "+want+" ") {
			t.Errorf("the schedule has no %q", want)
		}
	}
	if strings.Count(one, promote) != 1 {
		t.Errorf("the standby is promoted %d times", strings.Count(one, promote))
	}
}
