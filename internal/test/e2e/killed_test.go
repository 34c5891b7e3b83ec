package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestARestartAfterAKillTellsOnceWhatTheBusRecovered(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe("ada@example.net")
	s.http.completed(s.http.publish(`{"title":"One"}`))
	s.mustStop() // which writes the index of each stream
	s.start()
	s.http.completed(s.http.publish(`{"title":"Two"}`))
	before := len(s.logged())
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.gone
	s.start()
	log := s.logged()[before:]
	if strings.Contains(log, "level=WARN") || strings.Count(log, "recovered its streams") != 1 || !strings.Contains(log, "EVENTS (2 messages)") {
		t.Errorf("after a kill it logs %s", log)
	}
	s.http.completed(s.http.publish(`{"title":"Three"}`))
}
