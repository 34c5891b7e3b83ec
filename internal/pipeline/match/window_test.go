package match

import (
	"context"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// generationOf is the generation of each topic; the others have the default.
type generationOf map[string]catalog.Generation

func (g generationOf) Generation(_, topic string) catalog.Generation { return g[topic] }

// newWindowed reads groups while its clock stands before the end of all windows.
func newWindowed(t *testing.T) (*testIntake, *fixedClock) {
	in, clock := newTestIntake(t), &fixedClock{now: time.Now().Add(-time.Minute)}
	in.groups.clock = clock
	in.groups.generations = generationOf{
		"slow": {Window: 5 * time.Second}, "slower": {Window: 10 * time.Second}, "alone": {PerChange: true},
	}
	return in, clock
}

// drain takes all pieces that are ready, and returns their topics.
func (in *testIntake) drain() (topics []string) {
	in.t.Helper()
	for {
		p, ok := in.groups.next(in.t.Context())
		if !ok {
			return topics
		}
		topics = append(topics, p.Topic)
		if p.single != (p.Topic == "alone") {
			in.t.Errorf("single is %v of the topic %q", p.single, p.Topic)
		}
		if err := in.groups.frozen(p); err != nil {
			in.t.Fatal(err)
		}
	}
}

func TestEventsWaitForTheEndOfTheirWindow(t *testing.T) {
	in, clock := newWindowed(t)
	in.keepOf("slow", "story", "alone", "slower")
	in.keepOf("slow")
	in.awaitAhead(2)
	if got := in.drain(); !slices.Equal(got, []string{"", "alone"}) {
		t.Fatalf("within the windows got %q, want the events without a window", got)
	}
	clock.now = clock.now.Add(2 * time.Minute)
	got := in.drain()
	slices.Sort(got)
	if !slices.Equal(got, []string{"slow", "slow", "slower"}) {
		t.Fatalf("after the windows got %q, want all that waited", got)
	}
	if in.groups.held != 0 || in.groups.bytes != 0 {
		t.Errorf("%d groups and %d bytes are still counted", in.groups.held, in.groups.bytes)
	}
}

func TestAwaitReturnsAtTheEndOfAWindow(t *testing.T) {
	in, clock := newWindowed(t)
	in.keepOf("slow")
	in.awaitAhead(1)
	clock.now = in.groups.windows[0].ends.Add(-time.Millisecond)
	limit, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	lease, err := in.groups.nextLease(limit)
	if lease != nil || err != nil {
		t.Fatalf("got %v, %v, want the end of the window", lease, err)
	}
	clock.now = in.groups.windows[0].ends
	if err := in.groups.await(limit); err != nil {
		t.Fatal(err)
	}
	if got := in.drain(); !slices.Equal(got, []string{"slow"}) {
		t.Errorf("got %q", got)
	}
}

func TestUrgentEventsIgnoreWindows(t *testing.T) {
	in, _ := newWindowed(t)
	in.groups.lane = fanfare.Urgent
	in.keepOf("slow", "story")
	in.awaitAhead(1)
	if got := in.drain(); !slices.Equal(got, []string{""}) {
		t.Errorf("got %q, want all at once", got)
	}
}

func TestWindowsEndEarlyWhenReadAheadIsFull(t *testing.T) {
	in, _ := newWindowed(t)
	for range 3 {
		in.keepOf("slow")
	}
	in.awaitAhead(3)
	in.groups.held += maxGroupsAhead - 3
	if got := in.drain(); len(got) != 3 {
		t.Errorf("%d pieces come with all places taken, want 3", len(got))
	}
}

func TestReturnAllReturnsPiecesInWindows(t *testing.T) {
	in, _ := newWindowed(t)
	in.keepOf("slow", "story")
	in.awaitAhead(1)
	in.groups.returnAll()
	if in.groups.held != 0 || in.groups.bytes != 0 || len(in.groups.windows) != 0 {
		t.Fatalf("%d groups, %d bytes and %d windows are left", in.groups.held, in.groups.bytes, len(in.groups.windows))
	}
	in.groups.generations = generationOf{}
	in.awaitAhead(1)
	if p, events := in.next(); len(events) != 2 || p.lease.Deliveries != 2 {
		t.Errorf("%d events came with delivery %d, want both again", len(events), p.lease.Deliveries)
	}
}

// fixedClock is set by the test.
type fixedClock struct{ now time.Time }

func (c *fixedClock) Now() time.Time { return c.now }
