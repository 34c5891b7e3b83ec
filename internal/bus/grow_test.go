package bus

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

// alone fills the folder of a bus that is alone, and returns the texts in its EVENTS.
func alone(t *testing.T, dir string, fill func(b *Bus)) map[uint64]string {
	t.Helper()
	b, err := Open(t.Context(), Options{Dir: dir, Lease: time.Minute, FirstSeq: 1000, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	fill(b)
	groups := groupsOf(t, b)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return groups
}

// onMember opens a bus on a member, for a server whose earlier bus is in a folder.
func (c *members) onMember(ctx context.Context, i int, dir string) (*Bus, error) {
	return Open(ctx, Options{Dir: dir, Member: c.all[i], Replicas: 3, Lease: time.Minute, Matches: true, Existing: true, Logger: slog.New(slog.DiscardHandler)})
}

// The first node of a new cluster takes over the bus of the earlier server, also if it is interrupted several times: sequences,
// gaps, floors and batches are the same, and no other node uses an incomplete copy.
func TestAClusterTakesOverTheEarlierBus(t *testing.T) {
	t.Parallel()
	const groups, batches = 4000, 3000
	dir := filepath.Join(t.TempDir(), "bus")
	want := alone(t, dir, func(b *Bus) {
		q, err := b.Events(t.Context(), fanfare.Normal)
		if err != nil {
			t.Fatal(err)
		}
		seqs := appendGroups(t, b, fanfare.Normal, 20)
		for _, l := range takeAll(t, q, 20) {
			done(t, b, l)
		}
		if err := b.RewriteGroup(t.Context(), seqs[5], []byte("rewritten")); err != nil {
			t.Fatal(err)
		}
		appendGroups(t, b, fanfare.Bulk, groups)
		for i := range 5 {
			if _, err := b.AppendEvents(t.Context(), fanfare.Normal, fmt.Appendf(nil, "open %d", i)); err != nil {
				t.Fatal(err)
			}
		}
		texts := make([]string, batches)
		for i := range texts {
			texts[i] = fmt.Sprintf("batch %d", i)
		}
		publish(t, b, texts...)
		for _, l := range takeAll(t, batchQueue(t, b), 10) {
			if err := l.Done(); err != nil {
				t.Fatal(err)
			}
		}
		settled(t, b, Backlog{EventGroups: 5, Batches: batches - 10})
	})

	c := startMembers(t, nil)
	c.ready(0)
	c.ready(1)
	if _, err := c.onMember(t.Context(), 1, filepath.Join(t.TempDir(), "bus")); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(fmt.Sprint(err), "no streams") {
		t.Errorf("a node without the earlier bus: %v", err)
	}
	watch, err := c.all[1].host.connect(natsUser(c.all[1]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Close)
	interrupted := 0
	for _, subject := range []string{"fanfare.events.>", "fanfare.events.>", "fanfare.batches.>", "fanfare.batches.>"} {
		ctx, cancel := cancelAt(t, watch, subject, 300)
		b, err := c.onMember(ctx, 0, dir)
		if cancel(); err == nil { // it was faster
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			break
		}
		interrupted++
		if _, err := c.onMember(t.Context(), 1, filepath.Join(t.TempDir(), "bus")); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(fmt.Sprint(err), "the bus of node-1 has not been copied") {
			t.Errorf("another node during the copy: %v", err)
		}
	}
	if interrupted < 2 {
		t.Errorf("the copy was interrupted %d times", interrupted)
	}
	for range 2 { // the second time as if the process was killed before it renamed the folder
		b, err := c.onMember(t.Context(), 0, dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := groupsOf(t, b); !maps.Equal(got, want) {
			t.Fatalf("%d groups, want %d", len(got), len(want))
		}
		if next, err := b.NextEvent(t.Context()); err != nil || next != 1000+20+1+groups+5 {
			t.Errorf("the next group is %d, %v", next, err)
		}
		if backlog, err := b.Backlog(t.Context()); err != nil || backlog.Batches != batches-10 {
			t.Errorf("the backlog is %+v, %v", backlog, err)
		}
		open := 0
		if err := b.UnmatchedEvents(t.Context(), func(_ uint64, group []byte) error {
			if strings.HasPrefix(string(group), "open ") {
				open++
			}
			return nil
		}); err != nil || open != 5 {
			t.Errorf("%d open groups, %v", open, err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		moved, err := filepath.Glob(dir + ".moved-*")
		if err != nil || len(moved) != 1 {
			t.Fatalf("moved: %v, %v", moved, err)
		}
		if err := os.Rename(moved[0], dir); err != nil {
			t.Fatal(err)
		}
	}

	b, err := c.onMember(t.Context(), 2, filepath.Join(t.TempDir(), "bus"))
	if err != nil {
		t.Fatal(err)
	}
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	if l := takeAll(t, q, 1)[0]; string(l.Data) != "open 0" {
		t.Errorf("the first group to match is %q", l.Data)
	}
	if l := takeAll(t, batchQueue(t, b), 1)[0]; string(l.Data) != "batch 10" {
		t.Errorf("the first batch is %q", l.Data)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// A folder of another server is refused if it has unfinished work, and put aside if it has none.
func TestAClusterRefusesTheWorkOfAnotherBus(t *testing.T) {
	t.Parallel()
	busy, idle := filepath.Join(t.TempDir(), "bus"), filepath.Join(t.TempDir(), "bus")
	alone(t, busy, func(b *Bus) { appendGroups(t, b, fanfare.Normal, 1); publish(t, b, "one", "two") })
	alone(t, idle, func(*Bus) {})
	c := startMembers(t, nil)
	c.open(0, Options{Dir: filepath.Join(t.TempDir(), "bus")})
	if _, err := c.onMember(t.Context(), 1, busy); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(fmt.Sprint(err), "event groups: 1, batches: 2") {
		t.Errorf("a folder with work: %v", err)
	}
	if err := c.all[1].CheckFolder(t.Context(), busy, time.Minute); fanfare.CodeOf(err) != fanfare.Conflict {
		t.Errorf("the check of a folder with work: %v", err)
	}
	for _, dir := range []string{idle, filepath.Join(t.TempDir(), "bus")} {
		if err := c.all[1].CheckFolder(t.Context(), dir, time.Minute); err != nil {
			t.Errorf("the check of a folder without work: %v", err)
		}
	}
	if _, err := os.Stat(busy); err != nil {
		t.Errorf("the folder with work: %v", err)
	}
	b, err := c.onMember(t.Context(), 1, idle)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(idle); err == nil {
		t.Error("the folder without work is still there")
	}
}

// A member does not open the folder of a bus that was alone, in which NATS would delete the streams, and opens its own again.
func TestAMemberRefusesTheFolderOfABusThatWasAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "bus-cluster")
	alone(t, dir, func(b *Bus) { appendGroups(t, b, fanfare.Normal, 1) })
	if _, err := StartMember(MemberOptions{Name: "one", Dir: dir}); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(fmt.Sprint(err), "is the bus of a single server") {
		t.Errorf("a member with the folder of a single server: %v", err)
	}
	c := startMembers(t, nil)
	b := c.open(0, Options{Dir: filepath.Join(t.TempDir(), "bus")})
	appendGroups(t, b, fanfare.Normal, 1)
	for i := range c.all {
		if err := refuseAlone(c.all[i].options.Dir); err != nil {
			t.Errorf("the folder of member %d: %v", i, err)
		}
	}
}
