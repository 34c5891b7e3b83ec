package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// group is a commit of n entries from a position on, with all that may come with
// them.
func group(f *fanfare.Frozen, from, n int) *fanfare.Commit {
	c := &fanfare.Commit{Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: fanfare.Progress{First: noon, Last: noon, Completed: noon}}}}
	for i := range n {
		position := uint32(from + i)
		c.Entries = append(c.Entries, entry(f, position, 1, fanfare.Deferred))
		c.Dues = append(c.Dues, fanfare.Due{At: noon, Channel: 1, Slice: fanfare.Slice{Manifest: f.Manifests[0].ID, Positions: []uint32{position}, Attempt: 2}})
	}
	return c
}

// counted is how many rows a day has of what a commit keeps.
func counted(t *testing.T, s *Deliveries, day fanfare.Day) string {
	t.Helper()
	d, err := s.day(t.Context(), day, false)
	if err != nil {
		t.Fatal(err)
	}
	counts := ""
	err = d.read(t.Context(), func(conn *sqlite.Conn) error {
		for _, table := range []string{"attempts", "due", "completions"} {
			stmt, err := conn.Prepare("SELECT count(*) FROM " + table)
			if err != nil {
				return err
			}
			if _, err := stmt.Step(); err != nil {
				return err
			}
			counts += fmt.Sprintf("%s %d, ", table, stmt.ColumnInt64(0))
			if err := stmt.Reset(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

func pragma(t *testing.T, s *Deliveries, day fanfare.Day, text string) (value int64) {
	t.Helper()
	d, err := s.day(t.Context(), day, false)
	if err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	stmt, _, err := d.writer.PrepareTransient("PRAGMA " + text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stmt.Step(); err != nil {
		t.Fatal(err)
	}
	value = stmt.ColumnInt64(0)
	if err := stmt.Finalize(); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestACommitIsKeptAsAWholeOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, s *Deliveries, day fanfare.Day, f *fanfare.Frozen, c *fanfare.Commit)
		mend  func(t *testing.T, s *Deliveries, day fanfare.Day, c *fanfare.Commit)
		code  fanfare.Code
	}{
		{
			name: "an attempt that is there already",
			spoil: func(_ *testing.T, _ *Deliveries, _ fanfare.Day, f *fanfare.Frozen, c *fanfare.Commit) {
				c.Entries[70].Delivery.Position = 0
			},
			mend: func(_ *testing.T, _ *Deliveries, _ fanfare.Day, c *fanfare.Commit) {
				c.Entries[70].Delivery.Position = c.Dues[70].Slice.Positions[0]
			},
			code: fanfare.Internal,
		},
		{
			name: "a full disk",
			spoil: func(t *testing.T, s *Deliveries, day fanfare.Day, _ *fanfare.Frozen, c *fanfare.Commit) {
				for i := range c.Entries {
					c.Entries[i].Text = strings.Repeat("long ", 1000)
				}
				pragma(t, s, day, fmt.Sprintf("max_page_count=%d", pragma(t, s, day, "page_count")+20))
			},
			mend: func(t *testing.T, s *Deliveries, day fanfare.Day, _ *fanfare.Commit) {
				pragma(t, s, day, "max_page_count=1000000")
			},
			code: fanfare.DiskFull,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := openRecord(t, t.TempDir())
			f := frozenEvent(5, noon, 1000)
			day := f.Posted.Ref().Day
			freeze(t, s, f)
			if err := s.Commit(t.Context(), day, group(f, 0, 10)); err != nil {
				t.Fatal(err)
			}
			before := counted(t, s, day)
			commit := group(f, 10, 100)
			c.spoil(t, s, day, f, commit)
			for range 3 {
				if err := s.Commit(t.Context(), day, commit); fanfare.CodeOf(err) != c.code {
					t.Fatalf("got %v, want %s", err, c.code)
				}
				if now := counted(t, s, day); now != before {
					t.Fatalf("after an error there are %s, before %s", now, before)
				}
			}
			c.mend(t, s, day, commit)
			if err := s.Commit(t.Context(), day, commit); err != nil {
				t.Fatalf("when the cause is mended: %v", err)
			}
			if now := counted(t, s, day); now != "attempts 110, due 110, completions 1, " {
				t.Errorf("kept %s", now)
			}
		})
	}
}

func TestACompletedBroadcastShowsItsCounts(t *testing.T) {
	s := openRecord(t, t.TempDir())
	f := frozenEvent(5, noon, 2)
	freeze(t, s, f)
	var counts fanfare.Counts
	counts[fanfare.Accepted], counts[fanfare.Failed] = 1, 1
	err := s.Commit(t.Context(), f.Posted.Ref().Day, &fanfare.Commit{
		Entries:     []fanfare.Entry{entry(f, 0, 1, fanfare.Accepted), entry(f, 1, 1, fanfare.Failed)},
		Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: fanfare.Progress{Counts: counts, First: noon, Last: noon.Add(time.Second), Completed: noon.Add(2 * time.Second)}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Broadcast(t.Context(), f.Posted.Ref())
	if err != nil || b.State != "completed" || b.Counts != counts || !b.Stages.First.Equal(noon) || !b.Stages.Last.Equal(noon.Add(time.Second)) || !b.Stages.Completed.Equal(noon.Add(2*time.Second)) {
		t.Errorf("broadcast %+v (%v)", b, err)
	}
	err = s.Open(t.Context(), f.Posted.Ref().Day, func(seq fanfare.EventSeq, _ int64, _ fanfare.Progress) { t.Errorf("event %v is still open", seq) })
	if err != nil {
		t.Error(err)
	}
}

func TestBroadcastsOfADayAreListedNewestFirst(t *testing.T) {
	s := openRecord(t, t.TempDir())
	for stream := range uint64(30) {
		f := frozenEvent(stream+1, noon, 1)
		if stream%3 == 0 {
			f.Posted.Service = "weather"
		}
		freeze(t, s, f)
	}
	for _, c := range []struct {
		service string
		before  uint64
		limit   int
		want    []uint64
	}{
		{"", 100, 3, []uint64{30, 29, 28}},
		{"weather", 100, 3, []uint64{28, 25, 22}},
		{"weather", 22, 2, []uint64{19, 16}},
		{"news", 3, 10, []uint64{2}},
		{"nobody", 100, 10, nil},
	} {
		list, err := s.Broadcasts(t.Context(), fanfare.DayOf(noon), c.service, fanfare.NewEventSeq(c.before, 0), c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, b := range list {
			ref, _ := fanfare.ParseEventRef(b.Event)
			got = append(got, ref.Seq.Stream())
			if b.Data != nil {
				t.Error("a list has data")
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d of %q before %d: got %v, want %v", c.limit, c.service, c.before, got, c.want)
		}
	}
}

// TestAttemptsAreReadAsANaiveModelSays commits random attempts, in random groups
// over three manifests, and compares the newest ones, all of them, and what a
// restart counts.
func TestAttemptsAreReadAsANaiveModelSays(t *testing.T) {
	s := openRecord(t, t.TempDir())
	stream := uint64(0)
	rapid.Check(t, func(t *rapid.T) {
		stream++
		ctx := context.Background()
		f := frozenEvent(stream, noon, 12, 5, 1)
		day := f.Posted.Ref().Day
		if _, err := s.Freeze(ctx, []*fanfare.Frozen{f}, noon); err != nil {
			t.Fatal(err)
		}
		model := map[fanfare.DeliveryRef][]fanfare.Entry{}
		var first, last time.Time
		for range rapid.IntRange(0, 8).Draw(t, "groups") {
			commit := &fanfare.Commit{}
			in := map[fanfare.DeliveryRef]bool{}
			for range rapid.IntRange(1, 20).Draw(t, "entries") {
				m := f.Manifests[rapid.IntRange(0, 2).Draw(t, "manifest")]
				ref := fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: uint32(rapid.IntRange(0, m.Members()-1).Draw(t, "position"))}
				tries := model[ref]
				if in[ref] || len(tries) > 0 && tries[len(tries)-1].State.Settled() {
					continue
				}
				in[ref] = true
				state := rapid.SampledFrom([]fanfare.State{fanfare.Deferred, fanfare.Deferred, fanfare.Accepted, fanfare.Failed, fanfare.Expired, fanfare.Cancelled, fanfare.Suppressed}).Draw(t, "state")
				e := fanfare.Entry{Delivery: ref, Attempt: uint16(len(tries) + 1), State: state, Code: 1, At: noon.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "at")) * time.Millisecond)}
				model[ref] = append(tries, e)
				commit.Entries = append(commit.Entries, e)
				if first.IsZero() || e.At.Before(first) {
					first = e.At
				}
				if e.At.After(last) {
					last = e.At
				}
			}
			if err := s.Commit(ctx, day, commit); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range f.Manifests {
			from := uint32(rapid.IntRange(0, m.Members()).Draw(t, "from"))
			to := uint32(rapid.IntRange(0, m.Members()+2).Draw(t, "to"))
			var latest, attempts, wantLatest, wantAttempts []string
			for position := from; position < to; position++ {
				tries := model[fanfare.DeliveryRef{Day: day, Manifest: m.ID, Position: position}]
				for _, e := range tries {
					wantAttempts = append(wantAttempts, fmt.Sprint(e))
				}
				if n := len(tries); n > 0 {
					wantLatest = append(wantLatest, fmt.Sprint(position, n, tries[n-1].State))
				}
			}
			err := s.Latest(ctx, day, m.ID, from, to, func(position uint32, attempt uint16, state fanfare.State) {
				latest = append(latest, fmt.Sprint(position, attempt, state))
			})
			if err != nil || !slices.Equal(latest, wantLatest) {
				t.Fatalf("latest of %x [%d, %d): got %v (%v), want %v", m.ID, from, to, latest, err, wantLatest)
			}
			err = s.Attempts(ctx, day, m.ID, from, to, func(e *fanfare.Entry) error { attempts = append(attempts, fmt.Sprint(*e)); return nil })
			if err != nil || !slices.Equal(attempts, wantAttempts) {
				t.Fatalf("attempts of %x [%d, %d): got %v (%v), want %v", m.ID, from, to, attempts, err, wantAttempts)
			}
		}
		want := fanfare.Progress{First: first, Last: last}
		for _, tries := range model {
			want.Counts[tries[len(tries)-1].State]++
		}
		found := false
		err := s.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, progress fanfare.Progress) {
			if seq != f.Posted.Seq {
				return
			}
			found = true
			if progress != want || messages != 18 {
				t.Fatalf("a restart counts %+v of %d, want %+v of 18", progress, messages, want)
			}
		})
		if err != nil || !found {
			t.Fatalf("the broadcast is not open (%v)", err)
		}
		complete := &fanfare.Commit{Completions: []fanfare.Completion{{Seq: f.Posted.Seq, Progress: want}}}
		if err := s.Commit(ctx, day, complete); err != nil { // so that the next one is the only open one
			t.Fatal(err)
		}
	})
}
