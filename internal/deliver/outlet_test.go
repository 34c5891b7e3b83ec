package deliver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/kit"
)

// driverFunc is a driver of one function.
type driverFunc func(ctx context.Context, desk fanfare.Desk) error

func (f driverFunc) Serve(ctx context.Context, desk fanfare.Desk) error { return f(ctx, desk) }

// answering is a driver that takes every letter and answers by a function.
func answering(answer func(*fanfare.Letter) fanfare.Verdict) driverFunc {
	return func(ctx context.Context, desk fanfare.Desk) error {
		for {
			letter, err := desk.Next(ctx, true)
			if letter == nil {
				return err
			}
			if !desk.Release(letter) {
				continue
			}
			outcome := fanfare.Outcome{Verdict: answer(letter), Code: 250, Text: "said", Relay: "relay:25", At: time.Now()}
			if err := desk.Report(letter, outcome); err != nil {
				return err
			}
		}
	}
}

func taking(*fanfare.Letter) fanfare.Verdict { return fanfare.Taken }

// gateFunc is a gate of one function.
type gateFunc func(*Job) (Decision, string)

func (f gateFunc) Check(job *Job) (Decision, string) { return f(job) }

func open(*Job) (Decision, string) { return Go, "" }

// book is a recorder in memory.
type book struct {
	mu      sync.Mutex
	entries []fanfare.Entry
	dues    []fanfare.Due
	coming  int
	refuse  error
}

func (b *book) Expect() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.coming++
}

func (b *book) RecordExpected(entry *fanfare.Entry, due *fanfare.Due) error {
	b.mu.Lock()
	b.coming--
	b.mu.Unlock()
	return b.Record(entry, due)
}

func (b *book) Record(entry *fanfare.Entry, due *fanfare.Due) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse != nil {
		return b.refuse
	}
	b.entries = append(b.entries, *entry)
	if due != nil {
		b.dues = append(b.dues, *due)
	}
	return nil
}

// all returns what was recorded so far.
func (b *book) all() []fanfare.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.entries)
}

// states counts what was recorded so far by state.
func (b *book) states() map[fanfare.State]int {
	counts := map[fanfare.State]int{}
	for _, e := range b.all() {
		counts[e.State]++
	}
	return counts
}

// bench is an outlet with everything around it.
type bench struct {
	*Outlet
	t    testing.TB
	book *book

	mu       sync.Mutex
	next     uint32
	finished map[*Batch][]ending
	left     map[fanfare.DeliveryRef]int
}

type ending struct{ held, again int }

func rateLimit(perSecond float64) rate.Limit { return rate.Limit(perSecond) }

func settings(driver fanfare.Driver) Settings {
	return Settings{
		Driver: driver, Connections: 4, Rate: rate.Inf, Retry: Retry{time.Second, time.Second},
		SendTimeout: time.Minute, IdleTimeout: 30 * time.Second,
	}
}

func newBench(t testing.TB, gate Gate, s Settings) *bench {
	b := &bench{t: t, book: &book{}, finished: map[*Batch][]ending{}, left: map[fanfare.DeliveryRef]int{}}
	b.Outlet = NewOutlet(Options{
		Channel: 7, Name: "news/email", Gate: gate, Recorder: b.book, Clock: kit.System{},
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}, s)
	return b
}

// batch makes a batch of n jobs with positions that count through the bench.
func (b *bench) batch(lane fanfare.Lane, n int) *Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	batch := &Batch{Lane: lane, Jobs: make([]Job, n), Leased: func() time.Time { return time.Now().Add(time.Hour) }}
	for i := range batch.Jobs {
		ref := fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: b.next}
		batch.Jobs[i] = Job{
			Letter:        fanfare.Letter{Delivery: ref, To: fmt.Sprintf("p%d@example.org", b.next)},
			Subscriptions: []fanfare.Place{fanfare.Place(b.next)}, Attempt: 1,
		}
		b.next++
	}
	batch.Left = func(job *Job) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.left[job.Letter.Delivery]++
	}
	batch.Finish = func(held, again int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finished[batch] = append(b.finished[batch], ending{held, again})
	}
	return batch
}

// ended returns how a batch ended; more than one ending is a failure.
func (b *bench) ended(batch *Batch) (ending, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	endings := b.finished[batch]
	if len(endings) > 1 {
		b.t.Errorf("a batch was finished %d times: %v", len(endings), endings)
	}
	if len(endings) == 0 {
		return ending{}, false
	}
	return endings[0], true
}

// mustEnd checks that a batch ended once, in a way, with each job left once.
func (b *bench) mustEnd(batch *Batch, want ending) {
	b.t.Helper()
	if got, ok := b.ended(batch); !ok || got != want {
		b.t.Errorf("the batch ended with %+v (%v), want %+v", got, ok, want)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range batch.Jobs {
		if n := b.left[batch.Jobs[i].Letter.Delivery]; n != 1 {
			b.t.Errorf("job %d left the outlet %d times", i, n)
		}
	}
}

func TestEachJobOfABatchIsSentAndRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		batch := b.batch(fanfare.Normal, 100)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		seen := map[uint32]bool{}
		for _, e := range b.book.all() {
			if e.State != fanfare.Accepted || e.Attempt != 1 || e.Code != 250 || e.Relay != "relay:25" || e.Address != fmt.Sprintf("p%d@example.org", e.Delivery.Position) || e.At.IsZero() {
				t.Errorf("entry %+v", e)
			}
			seen[e.Delivery.Position] = true
		}
		if len(seen) != 100 || len(b.book.all()) != 100 {
			t.Errorf("%d entries of %d deliveries, want 100 of 100", len(b.book.all()), len(seen))
		}
		b.Stop()
	})
}

func TestAnEmptyBatchEndsAtOnce(t *testing.T) {
	b := newBench(t, gateFunc(open), settings(answering(taking)))
	batch := b.batch(fanfare.Bulk, 0)
	b.Submit(batch)
	b.mustEnd(batch, ending{})
	b.Stop()
}

func TestUrgentLeavesBeforeWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := make(chan struct{})
		var order []uint32
		s := settings(answering(func(l *fanfare.Letter) fanfare.Verdict {
			<-first
			order = append(order, l.Delivery.Position)
			return fanfare.Taken
		}))
		s.Connections = 1
		b := newBench(t, gateFunc(open), s)
		b.Submit(b.batch(fanfare.Bulk, 3)) // 0 1 2, of which 0 is on the wire
		synctest.Wait()
		b.Submit(b.batch(fanfare.Normal, 2)) // 3 4
		b.Submit(b.batch(fanfare.Urgent, 2)) // 5 6
		b.Submit(b.batch(fanfare.Bulk, 1))   // 7
		close(first)
		synctest.Wait()
		b.Stop()
		if want := []uint32{0, 5, 6, 3, 4, 1, 2, 7}; !slices.Equal(order, want) {
			t.Errorf("left in the order %v, want %v", order, want)
		}
	})
}

// TestWhatTheGateSaysBecomesOfAJob asks at both places: when a job is taken, and
// when its body is about to leave.
func TestWhatTheGateSaysBecomesOfAJob(t *testing.T) {
	past := time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC) // the bubble's clock begins in 2000
	for _, at := range []string{"when taken", "when released"} {
		for _, c := range []struct {
			name     string
			decision Decision
			expires  time.Time
			state    fanfare.State // Pending: no entry
			ending   ending
		}{
			{name: "go", decision: Go, state: fanfare.Accepted},
			{name: "hold", decision: Hold, state: fanfare.Pending, ending: ending{held: 3}},
			{name: "cancel", decision: Cancel, state: fanfare.Cancelled},
			{name: "suppress", decision: Suppress, state: fanfare.Suppressed},
			{name: "go, but expired", decision: Go, expires: past, state: fanfare.Expired},
			{name: "hold, and expired", decision: Hold, expires: past, state: fanfare.Pending, ending: ending{held: 3}},
		} {
			t.Run(c.name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					asked := map[*Job]int{}
					gate := func(job *Job) (Decision, string) {
						mu.Lock()
						defer mu.Unlock()
						asked[job]++
						if at == "when released" && asked[job] == 1 {
							return Go, ""
						}
						job.Expires = c.expires
						return c.decision, "because"
					}
					sent := 0
					b := newBench(t, gateFunc(gate), settings(answering(func(*fanfare.Letter) fanfare.Verdict {
						mu.Lock()
						defer mu.Unlock()
						sent++
						return fanfare.Taken
					})))
					batch := b.batch(fanfare.Normal, 3)
					for i := range batch.Jobs {
						batch.Jobs[i].Attempt = 2
					}
					b.Submit(batch)
					synctest.Wait()
					b.mustEnd(batch, c.ending)
					if (c.state == fanfare.Accepted) != (sent == 3) || c.state != fanfare.Accepted && sent != 0 {
						t.Errorf("%d messages left", sent)
					}
					entries := b.book.all()
					if c.state == fanfare.Pending {
						if len(entries) != 0 {
							t.Errorf("recorded %+v", entries)
						}
					} else if len(entries) != 3 {
						t.Errorf("%d entries, want 3", len(entries))
					}
					for _, e := range entries {
						if e.State != c.state || e.Attempt != 2 || e.At.IsZero() || e.Address == "" {
							t.Errorf("entry %+v, want %s", e, c.state)
						}
						if c.decision != Go && e.Text != "because" {
							t.Errorf("the reason is lost: %q", e.Text)
						}
					}
					if status := b.Status(); status.OnTheWire != 0 || status.Queued != 0 {
						t.Errorf("left behind: %+v", status)
					}
					b.Stop()
				})
			})
		}
	}
}

func TestADeferredJobIsDueAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(func(*fanfare.Letter) fanfare.Verdict { return fanfare.Temporary })))
		batch := b.batch(fanfare.Bulk, 1)
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{})
		b.Stop()
		if b.book.coming != 0 {
			t.Errorf("the recorder expects %d more", b.book.coming)
		}
		entry := b.book.all()[0]
		if len(b.book.dues) != 1 || entry.State != fanfare.Deferred {
			t.Fatalf("recorded %+v with %d dues", entry, len(b.book.dues))
		}
		due := b.book.dues[0]
		ref := batch.Jobs[0].Letter.Delivery
		if !due.At.Equal(entry.NextAt) || due.Channel != 7 || due.Lane != fanfare.Bulk || due.Slice.Manifest != ref.Manifest ||
			!slices.Equal(due.Slice.Positions, []uint32{ref.Position}) || due.Slice.Attempt != 2 {
			t.Errorf("due %+v of entry %+v", due, entry)
		}
	})
}

func TestWhatCannotBeRecordedComesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, gateFunc(open), settings(answering(taking)))
		b.book.refuse = errors.New("stopped")
		batch := b.batch(fanfare.Normal, 2)
		b.Submit(batch)
		<-time.After(time.Hour) // of the bubble
		b.mustEnd(batch, ending{again: 2})
		b.Stop()
	})
}

func TestNothingIsBegunUnderAShortLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := false
		b := newBench(t, gateFunc(open), settings(answering(func(*fanfare.Letter) fanfare.Verdict { sent = true; return fanfare.Taken })))
		batch := b.batch(fanfare.Normal, 2)
		batch.Leased = func() time.Time { return time.Now().Add(59 * time.Second) } // a send may take a minute
		b.Submit(batch)
		synctest.Wait()
		b.mustEnd(batch, ending{again: 2})
		if sent {
			t.Error("a message left")
		}
		b.Stop()
	})
}

func TestRoomBlocksWhileTheQueueIsFullAndFreesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		b := newBench(t, gateFunc(open), settings(answering(func(*fanfare.Letter) fanfare.Verdict { <-gate; return fanfare.Taken })))
		for range 2 {
			if err := b.Room(t.Context(), fanfare.Bulk); err != nil {
				t.Fatal(err)
			}
			b.Submit(b.batch(fanfare.Bulk, fanfare.MaxBatch))
		}
		synctest.Wait()
		if err := b.Room(t.Context(), fanfare.Urgent); err != nil {
			t.Errorf("another lane has no room: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := b.Room(short, fanfare.Bulk); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a full queue has room: %v", err)
		}
		freed := make(chan error, 1)
		go func() { freed <- b.Room(t.Context(), fanfare.Bulk) }()
		synctest.Wait()
		select {
		case err := <-freed:
			t.Fatalf("room too early: %v", err)
		default:
		}
		close(gate)
		if err := <-freed; err != nil {
			t.Error(err)
		}
		b.Stop()
	})
}

func TestStopGivesTheRestBackAndTakesNothingMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reply := make(chan struct{})
		s := settings(answering(func(*fanfare.Letter) fanfare.Verdict { <-reply; return fanfare.Taken }))
		s.Connections = 2
		b := newBench(t, gateFunc(open), s)
		batch := b.batch(fanfare.Normal, 1500)
		b.Submit(batch)
		synctest.Wait()
		stopped := make(chan struct{})
		go func() { b.Stop(); close(stopped) }()
		full := make(chan error, 1)
		go func() { full <- b.Room(context.Background(), fanfare.Normal) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("stopped while two messages were on the wire")
		default:
		}
		close(reply)
		<-stopped
		b.mustEnd(batch, ending{again: 1498})
		if got := b.book.states(); got[fanfare.Accepted] != 2 || len(got) != 1 {
			t.Errorf("recorded %v", got)
		}
		if err := <-full; err == nil {
			t.Error("a stopped outlet has room")
		}
		late := b.batch(fanfare.Urgent, 3)
		b.Submit(late)
		b.mustEnd(late, ending{again: 3})
		b.Stop()
	})
}
