package server_test

import (
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// maxCall is how long a call may take during an outage: seconds on a quiet machine, and less than the minute that a
// statement may take.
const maxCall = 45 * time.Second

func TestEventsAreAcceptedDuringAnOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	s := startOn(t, pg.URL, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(200))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Before","level":9}`)
	s.eventually("200 mails", func() bool { return s.sink.Stats().Unique == 200 })

	pg.Kill()
	s.eventually("it is not ready", func() bool {
		code, why := s.call("GET", "/readyz", "", "")
		return code == 503 && strings.Contains(why, "unreachable since") && strings.Contains(why, "resumes processing")
	})
	s.must(200, "GET", "/healthz", "", "")
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Meanwhile","level":9}`)
	for _, needs := range [][3]string{
		{"PUT", "/v1/subscriptions/mine", `{"topic":"story","channel":"email","to":"new@example.org","rule":"level","params":{"from":1},"data":{"why":"you asked"}}`},
		{"GET", "/v1/subscribers/person3@example.org/deliveries", ""},
		{"POST", "/v1/pause", `{"scope":{"kind":"channel","name":"news/email"}}`},
	} {
		begun := time.Now()
		code, answer, header := s.exchange(needs[0], needs[1], "application/json", needs[2])
		if code != 503 || header.Get("Retry-After") == "" || !strings.Contains(answer, `"hint"`) || strings.Contains(answer, "password") {
			t.Errorf("%s %s: %d, Retry-After %q, %s", needs[0], needs[1], code, header.Get("Retry-After"), answer)
		}
		if took := time.Since(begun); took > maxCall {
			t.Errorf("%s %s took %v", needs[0], needs[1], took)
		}
	}
	if status := s.must(200, "GET", "/v1/status", "", ""); !strings.Contains(status, `"ready":false`) || !strings.Contains(status, `"reason":"the database has been unreachable`) {
		t.Errorf("status: %s", status)
	}

	pg.Restart()
	s.eventually("it is ready again", func() bool {
		code, _ := s.call("GET", "/readyz", "", "")
		return code == 200
	})
	s.eventually("the mails of the event that was taken meanwhile", func() bool { return s.sink.Stats().Unique == 400 })
	s.must(201, "PUT", "/v1/subscriptions/mine", "application/json", `{"topic":"story","channel":"email","to":"new@example.org","rule":"level","params":{"from":1},"data":{"why":"you asked"}}`)
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Afterwards","level":9}`)
	s.eventually("the mails afterwards", func() bool { return s.sink.Stats().Unique == 601 })
	if got := s.sink.Stats(); got.Duplicates != 0 {
		t.Errorf("%d mails came twice, and no connection was sending when the database went", got.Duplicates)
	}
	if parked := s.must(200, "GET", "/v1/parked", "", ""); !strings.Contains(parked, `[]`) {
		t.Errorf("parked: %s", parked)
	}

	pg.Kill()
	stopped := make(chan error, 1)
	go func() { stopped <- s.app.Stop() }()
	select {
	case <-stopped: // the error of the database does not matter
	case <-time.After(time.Minute):
		t.Fatal("without its database the server does not stop")
	}
}
