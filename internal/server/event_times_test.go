package server_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// The test sets the times of events in each possible way, and restarts the server while they wait.
func TestMessagesAreSentBetweenNotBeforeAndExpires(t *testing.T) {
	t.Parallel()
	s := start(t, sink.Inject{})
	s.apply()
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(10))
	at := func(d time.Duration) string {
		return time.Now().UTC().Add(d).Truncate(time.Second).Format(time.RFC3339)
	}
	publish := func(query, contentType, body string) string {
		t.Helper()
		answer := s.must(202, "POST", "/v1/topics/story/events"+query, contentType, body)
		event := answer[strings.Index(answer, "evt-"):]
		return event[:strings.Index(event, `"`)]
	}
	soon := at(30 * time.Second) // a busy machine publishes slowly
	publish("?not_before="+url.QueryEscape(soon), "application/json", `{"title":"Soon","level":9}`)
	publish("", "application/cloudevents+json", `{"specversion":"1.0","id":"1","source":"/s","type":"story","notbefore":"`+soon+`","expirytime":"`+at(time.Hour)+`","data":{"title":"Soon too","level":9}}`)
	never := publish("?not_before="+url.QueryEscape(at(time.Hour)), "application/json", `{"title":"Never","level":9}`)
	s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"email","to":"z@example.org","content":{"subject":"x","text":"y"},"not_before":"`+soon+`"}`)
	s.eventually("all to wait with their times", func() bool {
		b := s.must(200, "GET", "/v1/broadcasts", "", "")
		return strings.Count(b, `"pending":10`) == 3 && strings.Count(b, `"pending":1}`) == 1 && strings.Count(b, `"not_before":"`+soon) == 3
	})
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	s.open()
	s.eventually("21 mails", func() bool { return s.sink.Stats().Unique == 21 })
	if first := s.sink.Stats().FirstAt; first.UTC().Format(time.RFC3339) < soon {
		t.Errorf("the first left at %v, before %s", first, soon)
	}

	s.must(204, "POST", "/v1/pause", "application/json", `{"scope":{"kind":"service","name":"news"}}`)
	late := publish("?expires="+url.QueryEscape(at(10*time.Second)), "application/json", `{"title":"Late","level":9}`)
	over := time.Now().Add(11 * time.Second)
	s.eventually("its end", func() bool { return time.Now().After(over) })
	s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"service","name":"news"}}`)
	s.eventually("the late one to expire", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/events/"+late, "", ""), `"expired":10`)
	})
	s.must(204, "POST", "/v1/cancel", "application/json", `{"scope":{"kind":"broadcast","name":"`+never+`"}}`)
	s.eventually("the waiting one to be cancelled", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/events/"+never, "", ""), `"cancelled":10`)
	})
	if got := s.sink.Stats(); got.Unique != 21 || got.Duplicates != 0 {
		t.Errorf("sent %+v", got)
	}
}

func TestImpossibleTimesAreRefused(t *testing.T) {
	s := start(t, sink.Inject{})
	s.apply()
	const plain = `{"title":"x","level":1}`
	for query, want := range map[string]string{
		"?expires=2001-01-01T00:00:00Z":                          "/expires",
		"?not_before=2999-01-01T00:00:00Z":                       "/not_before",
		"?not_before=tomorrow":                                   "/not_before",
		"?not_before=" + tomorrow(2) + "&expires=" + tomorrow(1): "/expires",
	} {
		batch := strings.NewReplacer("?", `","`, "&", `","`, "=", `":"`, "not_before", "notbefore").Replace(query)
		if code, answer := s.call("POST", "/v1/events", "application/cloudevents-batch+json",
			`[{"specversion":"1.0","id":"good","source":"/s","type":"story","data":`+plain+`},{"specversion":"1.0","id":"bad","source":"/s","type":"story`+batch+`","data":`+plain+`}]`); code/100 != 4 {
			t.Errorf("a batch with %s: %d %s", batch, code, answer)
		}
		if code, answer := s.call("POST", "/v1/topics/story/events"+query, "application/json", plain); code != 422 && code != 400 || !strings.Contains(answer, `"`+want+`"`) {
			t.Errorf("%s: %d %s", query, code, answer)
		}
	}
	for _, path := range []string{"/v1/messages", "/v1/dry-run/messages"} {
		message := `{"channel":"email","to":"ada@example.org","content":{"subject":"x","text":"y"},"expires":"2001-01-01T00:00:00Z"}`
		if code, answer := s.call("POST", path, "application/json", message); code != 422 || !strings.Contains(answer, `"/expires"`) {
			t.Errorf("a message that is over to %s: %d %s", path, code, answer)
		}
	}
	if b := s.must(200, "GET", "/v1/broadcasts", "", ""); strings.Contains(b, "evt-") {
		t.Errorf("an event of a refused batch was stored: %s", b)
	}
}

func tomorrow(days int) string {
	return time.Now().UTC().AddDate(0, 0, days).Format("2006-01-02T15:04:05Z")
}
