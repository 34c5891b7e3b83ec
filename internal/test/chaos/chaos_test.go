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

// shown is how many findings of one kind a failure names.
const shown = 5

func TestAClusterKeepsItsPromisesUnderRandomFaults(t *testing.T) {
	t.Parallel()
	seed := uint64(setting(t, "CHAOS_SEED", 1+rand.IntN(1e9)))
	length := time.Duration(setting(t, "CHAOS_MINUTES", 3)) * time.Minute
	t.Logf("CHAOS_SEED=%d", seed)
	c := newCluster(t)
	key, err := os.ReadFile(filepath.Join(c.nodes[0].dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	l := &load{c: c, key: strings.TrimSpace(string(key)), seed: seed, odd: map[string]int{}}
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
	var names, delivering []string
	for _, n := range c.nodes {
		names = append(names, n.name)
		if n.open() > 0 {
			delivering = append(delivering, n.name)
		}
	}
	r := &runner{c: c, all: schedule(seed, length, names, delivering), done: map[string]int{}}
	r.run(length)
	end()
	<-loaded
	if err := context.Cause(l.test); err != nil {
		t.Fatal(err)
	}
	t.Logf("%6.1fs all requests have responses", c.elapsed())
	l.settle(random)
	if err := l.completed(random); err != nil {
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
	frozen := 0
	for _, p := range r.pauses {
		frozen += p.limit
	}
	t.Logf("faults: %v; %d changes of the leader; %d events, %d subscriptions ended, %d people erased; %d requests, of which %d were repeated",
		r.done, l.c.turns-1, len(l.judge.events), l.ended, l.erased, l.requests.Load(), l.repeated.Load())
	t.Log(v)
	t.Logf("%d duplicates, of which interrupted connections permit %d and frozen nodes %d; frozen nodes may send %d after an end", v.duplicates, r.allowed, r.frozen, frozen)
	for text, n := range l.odd {
		t.Logf("%d responses: %s", n, text)
	}
	for what, found := range v.broken(r.pauses) {
		t.Errorf("%d messages: %s, such as %q", len(found), what, found[:min(shown, len(found))])
	}
	for _, bad := range l.c.relay.bad {
		t.Errorf("a message that has no event: %s", bad)
	}
	if v.duplicates > r.allowed+r.frozen {
		t.Errorf("%d duplicates, more than %d", v.duplicates, r.allowed+r.frozen)
	}
	if v.expected == 0 || v.digests == 0 || l.ended == 0 || l.erased == 0 || l.c.turns < 2 {
		t.Errorf("the run tried too little: %s", v)
	}
}
