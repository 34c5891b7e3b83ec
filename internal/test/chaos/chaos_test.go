//go:build crashsteps

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// setting reads a number from the environment.
func setting(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s is not a positive number", name, text)
	}
	return n
}

// separateFrom is the duration from which on the NATS servers run in their own processes, not in the nodes.
const separateFrom = 10 * time.Minute

// shown is how many findings of one kind a failure names.
const shown = 5

func TestAClusterKeepsItsPromisesUnderRandomFaults(t *testing.T) {
	t.Parallel()
	seed := uint64(setting(t, "CHAOS_SEED", 1+rand.IntN(1e9)))
	length := time.Duration(setting(t, "CHAOS_MINUTES", 3)) * time.Minute
	t.Logf("CHAOS_SEED=%d", seed)
	embedded := length < separateFrom
	t.Logf("isolated: %v; NATS servers embedded: %v; libfaketime: %q", isolated, embedded, libfaketime())
	c := newCluster(t, embedded)
	key, err := os.ReadFile(filepath.Join(c.nodes[0].dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{c: c, key: strings.TrimSpace(string(key)), seed: seed, length: length, odd: map[string]int{}}
	l.test, l.fail = context.WithCancelCause(t.Context())
	random := rand.New(rand.NewPCG(seed, 2))
	if _, err := l.send(random, request{method: "POST", path: "/v1/apply", contentType: "application/yaml", body: fmt.Sprintf(document, c.relay.address, connections)}); err != nil {
		t.Fatal(err)
	}
	changing, leaving, err := l.subscribe(random)
	if err != nil {
		t.Fatal(err)
	}
	stop, end := context.WithCancel(l.test)
	defer end()
	loaded := make(chan struct{})
	go func() { defer close(loaded); l.run(stop, changing, leaving) }()
	s := &setup{isolated: isolated, databaseClock: libfaketime() != ""}
	for _, n := range c.nodes {
		s.nodes = append(s.nodes, n.name)
		if n.open() > 0 {
			s.delivering = append(s.delivering, n.name)
		}
	}
	for _, b := range c.buses {
		s.buses = append(s.buses, b.machine.name)
	}
	r := &runner{c: c, all: schedule(seed, length, s), done: map[string]int{}, allowed: map[string]int{}}
	r.run(length)
	end()
	<-loaded
	if err := context.Cause(l.test); err != nil {
		t.Fatal(err)
	}
	t.Logf("%6.1fs all requests have responses", c.elapsed())
	l.settle(random)
	if err := l.completed(); err != nil {
		t.Error(err)
	}
	t.Logf("%6.1fs all events are completed", c.elapsed())
	l.check(r)
	c.takeOver()
}

// takeOver stops the node that leads: the other one can still take over.
func (c *cluster) takeOver() {
	c.t.Helper()
	before := c.leader()
	before.end(syscall.SIGTERM)
	before.ended()
	c.until("the other node leads", func() bool { return c.leader() != before && c.leader().ready() })
}

// settle waits until all has arrived, as long as messages arrive.
func (l *load) settle(random *rand.Rand) {
	seen, limit := 0, time.Now().Add(patience)
	for {
		all := l.c.relay.received()
		if len(l.judge.judge(all).lost) == 0 || time.Now().After(limit) {
			return
		}
		if len(all) > seen {
			seen, limit = len(all), time.Now().Add(patience/2)
		}
		<-time.After(500 * time.Millisecond)
	}
}

// check compares the expected result with the messages that arrived.
func (l *load) check(r *runner) {
	t := l.c.t
	t.Helper()
	l.judge.pauses = r.pauses
	v := l.judge.judge(l.c.relay.received())
	frozen := map[string]int{}
	for _, p := range r.pauses {
		if p.to.Sub(p.from) > lease {
			frozen[l.c.sender(l.c.named(p.node))] += p.limit
		}
	}
	t.Logf("faults: %v, skipped %d; %d changes of the leader; %d events, %d subscriptions ended, %d people erased; %d requests, of which %d were repeated",
		r.done, r.skipped, l.c.turns-1, len(l.judge.events), l.ended, l.erased, l.requests.Load(), l.repeated.Load())
	t.Log(v)
	t.Logf("duplicates by node: %v, permitted: %v; finished by frozen nodes: %v, permitted: %v", v.duplicates, r.allowed, v.late, frozen)
	for text, n := range l.odd {
		t.Logf("%d responses: %s", n, text)
	}
	for what, found := range v.broken(r.pauses) {
		t.Errorf("%d messages: %s, such as %q", len(found), what, found[:min(shown, len(found))])
	}
	for _, bad := range l.c.relay.bad {
		t.Errorf("a message that has no event: %s", bad)
	}
	for by, n := range v.duplicates {
		if n > r.allowed[by] {
			t.Errorf("%d duplicates of %q, more than %d", n, by, r.allowed[by])
		}
	}
	for by, n := range v.late {
		if n > frozen[by] {
			t.Errorf("%d duplicates of the frozen node %q, more than %d", n, by, frozen[by])
		}
	}
	if v.expected == 0 || v.digests == 0 || l.ended == 0 || l.erased == 0 || l.c.turns < 2 {
		t.Errorf("the run tried too little: %s", v)
	}
}
