package delivery

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/benchtest"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

func TestTheClockOfABroadcastStopsWhenTheLastOutcomeIsDurable(t *testing.T) {
	_, s := benchtest.NewSlowStore(t, 10)
	b, err := s.Broadcast(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "a broadcast (N1, D2, D4, D5, L1, L6, L7)", b.Durable(), 2)
	var r report.Record
	b.AddStagesTo(&r)
	for i, commits := range map[int]int{2: 1, 3: 2, 4: 2} {
		benchtest.AfterCommits(t, r.Stages[i].Name, time.Duration(r.Stages[i].Millis*float64(time.Millisecond)), commits)
	}
}

func TestTheClockOfASmallBroadcastStopsWhenTheLastOutcomeIsDurable(t *testing.T) {
	_, s := benchtest.NewSlowStore(t, 1)
	took, err := sendSmall(s)
	if err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "L9b", time.Duration(took*float64(time.Millisecond)), 2)
}

func TestTheClockOfHealthyDestinationsStopsWhenTheirOutcomesAreDurable(t *testing.T) {
	f, s := benchtest.NewSlowStore(t, 7)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(sink.Summary{Unique: 7, Messages: 7, Hosts: []sink.HostSummary{{Messages: 7}}})
	}))
	defer web.Close()
	event, err := s.API.Publish(t.Context(), "news", map[string]string{"id": "news"}, client.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.WaitManifests(event.ID); err != nil {
		t.Fatal(err)
	}
	p := &harness.Sink{Port: web.URL[strings.LastIndexByte(web.URL, ':')+1:]}
	at, err := awaitOutcomes(p, s, event.ID)
	if err != nil {
		t.Fatal(err)
	}
	benchtest.AfterCommits(t, "F1", at.Sub(f.Events[0].Stages.Received), 2)
}
