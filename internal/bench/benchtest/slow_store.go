package benchtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
)

// SlowCommit is the duration of each transaction of a SlowStore.
const SlowCommit = 60 * time.Millisecond

// A SlowStore serves the API of a server whose transactions take SlowCommit each. As in
// the product, a stage is stamped when a transaction begins and can be read after it has
// ended.
type SlowStore struct {
	*httptest.Server
	members int64 // deliveries of each event

	mu     sync.Mutex
	Events []*storedEvent
	free   time.Time // when the last transaction ends
}

type storedEvent struct {
	fanfare.Broadcast
	manifests, outcomes time.Time // when their transactions end
}

func NewSlowStore(t *testing.T, members int64) (*SlowStore, *harness.Server) {
	t.Helper()
	f := &SlowStore{members: members}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/topics/{topic}/events", f.post)
	mux.HandleFunc("GET /v1/events/{id}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, e := range f.Events {
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
		for i := len(f.Events) - 1; i >= 0 && len(list) == 0; i-- {
			if b, there := f.Events[i].read(time.Now()); there {
				list = append(list, b)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"broadcasts": list})
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		pending := 0
		for _, e := range f.Events {
			if b, _ := e.read(time.Now()); b.State != "completed" {
				pending++
			}
		}
		fmt.Fprintf(w, `{"bus":{"events_pending":%d}}`, pending)
	})
	mux.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.Close)
	s, err := harness.Attach(&harness.Env{Ctx: t.Context(), Options: harness.Options{Scale: 0.01, Seed: 1, Output: io.Discard}}, f.URL, "key")
	if err != nil {
		t.Fatal(err)
	}
	return f, s
}

// post accepts events and begins a transaction for their manifests and one for all of
// their outcomes. They wait for earlier transactions.
func (f *SlowStore) post(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	begin := now
	if f.free.After(now) {
		begin = f.free
	}
	f.free = begin.Add(2 * SlowCommit)
	var ids []string
	for line := range strings.Lines(string(body)) {
		var data struct {
			ID string `json:"id"`
		}
		_ = json.Unmarshal([]byte(line), &data)
		e := &storedEvent{manifests: begin.Add(SlowCommit), outcomes: f.free}
		e.Event, e.SourceID, e.Messages, e.Matched = fmt.Sprintf("evt-%d", len(f.Events)), data.ID, f.members, f.members
		e.Stages = fanfare.Stages{Received: now, Kept: now, Matched: now, Frozen: begin, First: e.manifests, Last: e.manifests, Completed: e.manifests}
		f.Events = append(f.Events, e)
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

// AfterCommits fails the test if a clock stopped before a number of transactions had
// ended.
func AfterCommits(t *testing.T, clock string, took time.Duration, commits int) {
	t.Helper()
	if least := time.Duration(commits) * SlowCommit; took < least {
		t.Errorf("%s stopped after %v, before the commit at %v", clock, took, least)
	}
}
