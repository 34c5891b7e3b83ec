package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	quakeEvent = `{"specversion":"1.0","id":"1","source":"/usgs","type":"quakes","subject":"Alaska","time":"2026-11-20T08:15:00.5Z","data":{"mag":4.5},"ext1":true}`
	intake     = "/v1/topics/quakes/events"
)

func TestEventsAreTakenInEveryMode(t *testing.T) {
	for name, test := range map[string]struct {
		path, body string
		header     []string
		check      func(e fanfare.AcceptedEvent) bool
	}{
		"structured": {intake, quakeEvent, []string{"Content-Type", httpio.CloudEvent + "; charset=utf-8"}, func(p fanfare.AcceptedEvent) bool {
			return p.Event.ID == "1" && p.Event.Source == "/usgs" && p.Event.Subject == "Alaska" && p.Event.Time.Nanosecond() == 5e8 && string(p.Event.Data) == `{"mag":4.5}` && p.Lane == fanfare.TopicLane
		}},
		"type names the topic": {"/v1/events", quakeEvent, []string{"Content-Type", httpio.CloudEvent}, func(p fanfare.AcceptedEvent) bool { return p.Topic == "quakes" }},
		"base64":               {intake, `{"specversion":"1.0","id":"1","source":"/u","type":"x","data_base64":"eyJtYWciOjF9"}`, []string{"Content-Type", httpio.CloudEvent}, func(p fanfare.AcceptedEvent) bool { return string(p.Event.Data) == `{"mag":1}` && p.Event.Type == "x" }},
		"binary": {intake, `{"mag":1}`, []string{"Content-Type", "application/json", "Ce-Specversion", "1.0", "Ce-Id", "7", "Ce-Source", "/usgs", "Ce-Type", "quakes", "Ce-Subject", "Z%C3%BCrich"}, func(p fanfare.AcceptedEvent) bool {
			return p.Event.ID == "7" && p.Event.Subject == "Zürich"
		}},
		"plain": {intake, `{"mag":1}`, nil, func(p fanfare.AcceptedEvent) bool {
			return len(p.Event.ID) > 20 && p.Event.Source == "/news" && p.Event.Type == "quakes"
		}},
		"plain with headers": {intake, `{"mag":1}`, []string{"Ce-Id", "9", "Ce-Source", "/x", "X-Fanfare-Lane", "urgent"}, func(p fanfare.AcceptedEvent) bool {
			return p.Event.ID == "9" && p.Event.Source == "/x" && p.Lane == fanfare.Urgent
		}},
		"plain with query": {intake + "?id=9&source=/x&lane=bulk", `{"mag":1}`, nil, func(p fanfare.AcceptedEvent) bool {
			return p.Event.ID == "9" && p.Event.Source == "/x" && p.Lane == fanfare.Bulk
		}},
		"plain with pointers":    {intake + "?id=/a/0&time=/at", `{"mag":1,"a":[17],"at":"2020-01-01T00:00:00Z"}`, nil, func(p fanfare.AcceptedEvent) bool { return p.Event.ID == "17" && p.Event.Time.Year() == 2020 }},
		"query beats the header": {intake + "?lane=bulk", `{"mag":1}`, []string{"X-Fanfare-Lane", "urgent"}, func(p fanfare.AcceptedEvent) bool { return p.Lane == fanfare.Bulk }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			rec := ask(t, w.api(), "POST", test.path, test.body, test.header...)
			var out wire.Accepteds
			if rec.Code != 202 || json.Unmarshal(rec.Body.Bytes(), &out) != nil || len(out.Events) != 1 || out.Events[0].Duplicate || !strings.HasPrefix(out.Events[0].ID, "evt-") {
				t.Fatalf("%d %s", rec.Code, rec.Body)
			}
			if len(w.posted) != 1 || !test.check(w.posted[0]) || w.posted[0].Service != "news" {
				t.Errorf("kept %+v", w.posted)
			}
		})
	}
}

func TestRepeatedEventIsADuplicateOfTheFirst(t *testing.T) {
	a := newWorld().api()
	first := ask(t, a, "POST", intake, quakeEvent, "Content-Type", httpio.CloudEvent)
	second := ask(t, a, "POST", intake, quakeEvent, "Content-Type", httpio.CloudEvent)
	if want := strings.Replace(first.Body.String(), "false", "true", 1); second.Code != 202 || second.Body.String() != want {
		t.Errorf("%d %s after %s", second.Code, second.Body, first.Body)
	}
}

func TestBatchIsKeptAsAWholeOrNotAtAll(t *testing.T) {
	w := newWorld()
	a := w.api()
	event := func(id, data string) string {
		return `{"specversion":"1.0","id":"` + id + `","source":"/u","type":"quakes","data":` + data + `}`
	}
	for name, test := range map[string]struct {
		body     string
		pointers []string
	}{
		"attributes": {`[` + event("1", `{"mag":1}`) + `,{"specversion":"1.0","id":"2"},` + event("", `{"mag":1}`) + `]`, []string{"/1/source", "/2/id"}},
		"data":       {`[` + event("1", `{"mag":1}`) + `,` + event("2", `{}`) + `,` + event("3", `{}`) + `]`, []string{"/1/data/mag", "/2/data/mag"}},
	} {
		p := problemIn(t, ask(t, a, "POST", intake, test.body, "Content-Type", httpio.CloudEventBatch), 422, fanfare.Invalid)
		if len(p.Errors) != len(test.pointers) {
			t.Fatalf("%s: %+v", name, p)
		}
		for i, want := range test.pointers {
			if p.Errors[i].Pointer != want {
				t.Errorf("%s: %s, not %s", name, p.Errors[i].Pointer, want)
			}
		}
	}
	if len(w.posted) != 0 {
		t.Errorf("%d are kept of bad batches", len(w.posted))
	}
	rec := ask(t, a, "POST", intake, `[`+event("1", `{"mag":1}`)+`,`+event("2", `{"mag":2}`)+`]`, "Content-Type", httpio.CloudEventBatch)
	var out wire.Accepteds
	if json.Unmarshal(rec.Body.Bytes(), &out); rec.Code != 202 || len(out.Events) != 2 || len(w.posted) != 2 {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if rec := ask(t, a, "POST", intake, `[]`, "Content-Type", httpio.CloudEventBatch); rec.Code != 202 || rec.Body.String() != `{"events":[]}`+"\n" {
		t.Errorf("empty batch: %d %s", rec.Code, rec.Body)
	}
	many := "[" + strings.Repeat(`{"specversion":"1.0","id":"1","source":"/u","type":"q"},`, fanfare.MaxGroup) + event("2", "{}") + "]"
	problemIn(t, ask(t, a, "POST", intake, many, "Content-Type", httpio.CloudEventBatch), 413, fanfare.TooLarge)
}

func TestEventLinesStandByThemselves(t *testing.T) {
	w := newWorld()
	a := w.api()
	body := `{"id":"a","mag":1,"time":"2020-01-01T00:00:00Z"}` + "\n" + `{"mag":1}` + "\n\n" + `{"id":"b","mag":null,"time":"2020-01-01T00:00:00Z"}` + "\n" + `{"id":"c","mag":2,` + "\n" +
		`{"id":"a","mag":1,"time":"2020-01-01T00:00:00Z"}` + "\n" + `{"id":4,"mag":2,"time":"2020-01-02T00:00:00Z"}`
	rec := ask(t, a, "POST", intake+"?id=/id&time=/time", body, "Content-Type", httpio.NDJSON)
	answers := strings.Split(strings.TrimSpace(rec.Body.String()), "\n")
	wants := []string{`"duplicate":false`, `"line":2`, `"line":4`, `"line":5`, `"duplicate":true`, `"duplicate":false`}
	if rec.Code != 202 || len(answers) != len(wants) {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	for i, want := range wants {
		if !strings.Contains(answers[i], want) {
			t.Errorf("answer %d is %s, not %s", i, answers[i], want)
		}
	}
	if !strings.Contains(answers[1], `"pointer":"/id"`) || !strings.Contains(answers[2], `"pointer":"/data/mag"`) {
		t.Errorf("pointers are missing: %s", rec.Body)
	}
	if len(w.posted) != 2 || w.posted[1].Event.ID != "4" || w.posted[1].Event.Time.Day() != 2 {
		t.Errorf("kept %+v", w.posted)
	}

	rec = ask(t, a, "POST", intake+"?quiet=true&id=/id", body, "Content-Type", httpio.NDJSON)
	var sum wire.EventSummary
	if json.Unmarshal(rec.Body.Bytes(), &sum); sum.Accepted != 0 || sum.Duplicates != 3 || sum.Failed != 3 || sum.First == "" || sum.Last == sum.First {
		t.Errorf("summary is %s", rec.Body)
	}
	rec = ask(t, a, "POST", "/v1/events?format=cloudevents", quakeEvent+"\n"+`{"specversion":"1.0"}`, "Content-Type", httpio.NDJSON)
	if !strings.Contains(rec.Body.String(), `"duplicate":false`) || !strings.Contains(rec.Body.String(), `"line":2`) {
		t.Errorf("cloudevents by line: %s", rec.Body)
	}
}

func TestBadEventsAreRefusedWithAPointer(t *testing.T) {
	a := newWorld().api()
	for name, test := range map[string]struct {
		path, body string
		header     []string
		status     int
		pointer    string
	}{
		"no type in plain JSON":     {"/v1/events", `{"mag":1}`, nil, 422, "/type"},
		"unknown type":              {"/v1/events", strings.Replace(quakeEvent, `"quakes"`, `"weather"`, 1), []string{"Content-Type", httpio.CloudEvent}, 404, ""},
		"pointer that is none":      {intake + "?time=at", `{"mag":1}`, nil, 422, ""},
		"pointer to nothing":        {intake + "?id=/nix", `{"mag":1}`, nil, 422, "/nix"},
		"reserved id":               {intake + "?id=evt-1", `{"mag":1}`, nil, 422, ""},
		"unknown format":            {intake + "?format=xml", "{}", []string{"Content-Type", httpio.NDJSON}, 422, ""},
		"line break in a header":    {intake, `{"mag":1}`, []string{"Ce-Id", "a%0D%0Ab"}, 422, "/id"},
		"line break in the subject": {intake, strings.Replace(quakeEvent, "Alaska", `a\r\nBcc: b`, 1), []string{"Content-Type", httpio.CloudEvent}, 422, "/subject"},
		"not JSON":                  {intake, `<quake/>`, []string{"Content-Type", "text/xml"}, 422, ""},
		"too much data":             {intake, `{"mag":1,"x":"` + strings.Repeat("x", 256<<10) + `"}`, nil, 413, "/data"},
	} {
		t.Run(name, func(t *testing.T) {
			code := fanfare.Invalid
			switch test.status {
			case 404:
				code = fanfare.NotFound
			case 413:
				code = fanfare.TooLarge
			}
			if p := problemIn(t, ask(t, a, "POST", test.path, test.body, test.header...), test.status, code); p.Pointer != test.pointer {
				t.Errorf("pointer is %q: %+v", p.Pointer, p)
			}
		})
	}
}

func TestEventIDsAreMadeWhereThereAreNone(t *testing.T) {
	w := newWorld()
	a := w.api()
	var body strings.Builder
	for i := range 500 {
		fmt.Fprintf(&body, `{"mag":%d}`+"\n", i)
	}
	ask(t, a, "POST", intake, body.String(), "Content-Type", httpio.NDJSON)
	seen := map[string]bool{}
	for _, p := range w.posted {
		seen[p.Event.ID] = true
	}
	if len(seen) != 500 {
		t.Errorf("%d different ids for 500 events", len(seen))
	}
}
