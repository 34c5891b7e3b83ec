package server_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

var eventID = regexp.MustCompile(`evt-\d+-[0-9a-f]+`)

// The record of sent messages determines the open work; the batches of the bus are only hints.
func TestOpenDeliveriesContinueAfterTheBusIsLost(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(1000))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Before","level":9}`)
	s.eventually("1000 mails", func() bool { return s.sink.Stats().Unique == 1000 })
	s.must(204, "POST", "/v1/pause", "application/json", `{"scope":{"kind":"channel","name":"news/email"},"reason":"the bus is about to be lost"}`)
	second := eventID.FindString(s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Open","level":9}`))
	s.eventually("the second broadcast is frozen", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/status", "", ""), `"pending":1000`)
	})
	s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"channel","name":"news/email"}}`)
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	before := s.sink.Stats().Unique
	if err := os.RemoveAll(filepath.Join(s.dir, "bus")); err != nil {
		t.Fatal(err)
	}

	s.open()
	s.eventually("all 2000 mails", func() bool { return s.sink.Stats().Unique == 2000 })
	t.Logf("%d of them after the bus was lost", 2000-before)
	if got := s.sink.Stats(); got.Duplicates != 0 {
		t.Errorf("%d duplicates", got.Duplicates)
	}
	s.eventually("nothing is open", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/status", "", ""), `"pending":0`)
	})
	third := eventID.FindString(s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"After","level":9}`))
	if len(third) <= len(second)+3 { // the sequence is in hex
		t.Errorf("%s comes after %s, and might have been given out before", third, second)
	}
	s.eventually("all 3000 mails", func() bool { return s.sink.Stats().Unique == 3000 })
	if _, err := os.Lstat(filepath.Join(s.dir, "bus.lost")); err == nil {
		t.Error("the mark is still there")
	}
}
