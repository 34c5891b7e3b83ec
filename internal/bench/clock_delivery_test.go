package bench

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

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
