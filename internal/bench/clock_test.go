package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// slowCommit is how long the transactions of a slowStore take.
const slowCommit = 60 * time.Millisecond

// A slowStore is the API of a server whose transactions take slowCommit each. As in
// the product, stages are stamped when a transaction begins, and can be read after
// its end.
type slowStore struct {
	*httptest.Server
	members int64 // deliveries of each event

	mu     sync.Mutex
	events []*storedEvent
	free   time.Time // when the transactions so far are over
}

type storedEvent struct {
	fanfare.Broadcast
	manifests, outcomes time.Time // when their transactions are over
}

func newSlowStore(t *testing.T, members int64) (*slowStore, *server) {
	t.Helper()
	f := &slowStore{members: members}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/topics/{topic}/events", f.post)
	mux.HandleFunc("GET /v1/events/{id}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.events {
			if e.SourceID == r.PathValue("id") || e.Event == r.PathValue("id") {
				if b, there := e.read(time.Now()); there {
					_ = json.NewEncoder(w).Encode(b)
					return
				}
			}
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"code":"not_found","detail":"no such event"}`)
	})
	mux.HandleFunc("GET /v1/broadcasts", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		list := []fanfare.Broadcast{}
		for i := len(f.events) - 1; i >= 0 && len(list) == 0; i-- {
			if b, there := f.events[i].read(time.Now()); there {
				list = append(list, b)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"broadcasts": list})
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		pending := 0
		for _, e := range f.events {
			if b, _ := e.read(time.Now()); b.State != "completed" {
				pending++
			}
		}
		fmt.Fprintf(w, `{"bus":{"events_pending":%d}}`, pending)
	})
	mux.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	api, err := client.New(f.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.FindProcess(os.Getpid()) // its peak of memory is looked at
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{ctx: t.Context(), Options: Options{Scale: 0.01, Seed: 1, Output: io.Discard}}
	return f, &server{child: &child{ended: true, cmd: &exec.Cmd{Process: self}}, api: api.ForService(service), url: f.URL, lab: l}
}

// post takes events and begins a transaction for their manifests, and one for all
// of their outcomes, behind those that are under way.
func (f *slowStore) post(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	begin := now
	if f.free.After(now) {
		begin = f.free
	}
	f.free = begin.Add(2 * slowCommit)
	var ids []string
	for line := range strings.Lines(string(body)) {
		var data struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal([]byte(line), &data)
		e := &storedEvent{manifests: begin.Add(slowCommit), outcomes: f.free}
		e.Event, e.SourceID, e.Messages, e.Matched = fmt.Sprintf("evt-%d", len(f.events)), data.ID, f.members, f.members
		e.Stages = fanfare.Stages{Received: now, Kept: now, Matched: now, Frozen: begin, First: e.manifests, Last: e.manifests, Completed: e.manifests}
		f.events = append(f.events, e)
		ids = append(ids, e.Event)
	}
	switch {
	case r.Header.Get("Content-Type") == "application/json":
		fmt.Fprintf(w, `{"events":[{"id":%q}]}`, ids[0])
	case r.URL.Query().Get("quiet") == "true":
		fmt.Fprintf(w, `{"accepted":%d}`, len(ids))
	default:
		for _, id := range ids {
			fmt.Fprintf(w, `{"id":%q}`+"\n", id)
		}
	}
}

// read returns an event as a reader sees it at a time.
func (e *storedEvent) read(now time.Time) (b fanfare.Broadcast, there bool) {
	b = e.Broadcast
	if now.Before(e.manifests) {
		return b, false
	}
	b.State, b.Counts = "running", fanfare.Counts{fanfare.Pending: b.Messages}
	if now.Before(e.outcomes) {
		b.Stages.First, b.Stages.Last, b.Stages.Completed = time.Time{}, time.Time{}, time.Time{}
	} else {
		b.State, b.Counts = "completed", fanfare.Counts{fanfare.Accepted: b.Messages}
	}
	return b, true
}

// afterCommits fails where a clock stopped before so many transactions were over.
func afterCommits(t *testing.T, clock string, took time.Duration, commits int) {
	t.Helper()
	if least := time.Duration(commits) * slowCommit; took < least {
		t.Errorf("%s stopped after %v, before the commit at %v", clock, took, least)
	}
}

func TestTheClockOfABroadcastStopsWhenTheLastOutcomeIsDurable(t *testing.T) {
	_, s := newSlowStore(t, 10)
	b, err := s.broadcast(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "a broadcast (N1, D2, D4, D5, L1, L6, L7)", b.durable(), 2)
	var r Record
	b.stagesInto(&r)
	for i, commits := range map[int]int{2: 1, 3: 2, 4: 2} {
		afterCommits(t, r.Stages[i].Name, time.Duration(r.Stages[i].Millis*float64(time.Millisecond)), commits)
	}
}

func TestTheClockOfASmallBroadcastStopsWhenTheLastOutcomeIsDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	took, err := s.small()
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "L9b", time.Duration(took*float64(time.Millisecond)), 2)
}

func TestTheClocksOfQuotesStopWhenTheManifestsAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	body := []byte(`{"id":"quote-0"}` + "\n" + `{"id":"quote-1"}` + "\n")
	if err := s.publishAll(body, 2); err != nil {
		t.Fatal(err)
	}
	took, err := s.untilLastManifest("quote-0", "quote-1")
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "C2 at full pace", took, 1)

	r := Record{Value: 20}
	if err := s.halfPace(&r, newMarket(200_000, 1)); err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "C2 at half pace", time.Duration(r.P50Millis*float64(time.Millisecond)), 1)
}

func TestTheClockOfAlertsBesideAddsStopsWhenTheManifestIsDurable(t *testing.T) {
	f, s := newSlowStore(t, 1)
	watch := s.watchManifests()
	if err := s.publishAll([]byte(`{"id":"b10-0"}`+"\n"), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	if err := watch.end(s); err != nil {
		t.Fatal(err)
	}
	all, err := s.broadcasts([]string{"b10-0"})
	if err != nil {
		t.Fatal(err)
	}
	took, err := watch.untilManifests(all)
	if err != nil {
		t.Fatal(err)
	}
	afterCommits(t, "B10 and L4", time.Duration(took[0]*float64(time.Millisecond)), 1)
	if _, err := watch.durableAt(f.events[0].Stages.Frozen.Add(time.Hour)); err == nil {
		t.Error("manifests that no read has shown are said to be durable")
	}
}

func TestTheClockOfABatchStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	times, _, err := s.oneBatch([]byte(`{"id":"a"}`+"\n"+`{"id":"b"}`+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var r Record
	r.stages(&times)
	afterCommits(t, "M1", time.Duration(r.Value*float64(time.Millisecond)), 2)
	for i, stage := range r.Stages {
		if commits := []int{0, 0, 1, 1}[i]; stage.Millis < millis(time.Duration(commits)*slowCommit)-10 {
			t.Errorf("%s took %v ms, with %d commits", stage.Name, stage.Millis, commits)
		}
	}
}

func TestTheClockOfARoundOfQuotesStopsWhenTheOutcomesAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 1)
	for _, id := range []string{"q0", "q1"} { // two transactions each, one behind the other
		if err := s.publishAll([]byte(`{"id":"`+id+`"}`+"\n"), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.quiet(func(int64) {}); err != nil {
		t.Fatal(err)
	}
	seen := time.Now()
	all, err := s.broadcasts([]string{"q0", "q1"})
	if err != nil {
		t.Fatal(err)
	}
	whole, each := roundTimes(all, seen)
	afterCommits(t, "C1, the round", whole, 4)
	afterCommits(t, "C1, the first quote", time.Duration(each[0]*float64(time.Millisecond)), 2)
	afterCommits(t, "C1, the second quote", time.Duration(each[1]*float64(time.Millisecond)), 3)
}

func TestTheClockOfHealthyDestinationsStopsWhenTheirOutcomesAreDurable(t *testing.T) {
	_, s := newSlowStore(t, 7)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(sink.Summary{Unique: 7, Messages: 7, Hosts: []sink.HostSummary{{Messages: 7}}})
	}))
	defer web.Close()
	if err := s.publishAll([]byte(`{"id":"news"}`+"\n"), 1); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, _, err := s.manifestsDurable("news"); err != nil {
		t.Fatal(err)
	}
	p := &post{port: web.URL[strings.LastIndexByte(web.URL, ':')+1:]}
	at, err := p.awaitOutcomes(s, "news")
	if err != nil {
		t.Fatal(err)
	}
	if took := at.Sub(began); took < 2*slowCommit-5*time.Millisecond {
		t.Errorf("F1 stopped after %v, before the commit at %v", took, 2*slowCommit)
	}
}

func TestReadsBecomeFrequentTowardsTheEnd(t *testing.T) {
	for _, c := range []struct {
		elapsed        time.Duration
		settled, total int64
		want           time.Duration
	}{
		{0, 0, 0, shortestPoll},
		{100 * time.Millisecond, 0, 100, 5 * time.Millisecond},
		{10 * time.Second, 50, 100, longestPoll},
		{10 * time.Second, 999, 1000, 2502502 * time.Nanosecond},
		{10 * time.Second, 100, 100, shortestPoll},
	} {
		if got := pollPause(c.elapsed, c.settled, c.total); got != c.want {
			t.Errorf("after %v with %d of %d: %v, want %v", c.elapsed, c.settled, c.total, got, c.want)
		}
	}
}
