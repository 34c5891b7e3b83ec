package server_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/sink"
)

func TestDamagedBatchIsParkedAndCanBeDropped(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(10))
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	hops, err := bus.Open(t.Context(), bus.Options{Dir: filepath.Join(s.dir, "bus"), Lease: 10 * time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := hops.PublishBatches(t.Context(), []bus.Batch{{Channel: 1, Lane: fanfare.Normal, Data: []byte(`{"day":`)}}); err != nil {
		t.Fatal(err)
	}
	if err := hops.Close(); err != nil {
		t.Fatal(err)
	}
	s.open()

	var parked string
	s.eventually("the damaged batch is parked", func() bool {
		parked = s.must(200, "GET", "/v1/parked", "", "")
		return strings.Contains(parked, `"kind":"batch"`) && strings.Contains(parked, "JSON")
	})
	_, id, _ := strings.Cut(parked, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if answer := s.must(409, "POST", "/v1/parked/"+id+"/retry", "", ""); !strings.Contains(answer, "drop the batch") {
		t.Errorf("a retry says %s", answer)
	}
	s.must(204, "DELETE", "/v1/parked/"+id, "", "")
	if left := s.must(200, "GET", "/v1/parked", "", ""); strings.Contains(left, id) {
		t.Errorf("still parked: %s", left)
	}
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It goes on","level":9}`)
	s.eventually("ten mails", func() bool { return s.sink.Stats().Unique == 10 })
}
