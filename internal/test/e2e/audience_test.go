package e2e

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A sender narrows who of those that want an event get it, by what is known of them
// and by what they asked for.
func TestASenderNarrowsTheAudience(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	for i, who := range []struct{ locale, region string }{{"de-AT", "Wien"}, {"de-DE", "Berlin"}, {"fr", "Paris"}, {"", ""}} {
		locale, attributes := "", ""
		if who.locale != "" {
			locale, attributes = fmt.Sprintf(`,"locale":%q`, who.locale), fmt.Sprintf(`,"attributes":{"region":%q}`, who.region)
		}
		s.http.subscribe(fmt.Sprintf(`{"id":"s%d","topic":"story","channel":"email","to":"p%d@example.org","rule":"level","params":{"from":%d}%s%s}`, i, i, i, locale, attributes))
	}
	s.http.subscribe(`{"id":"near0","topic":"story","channel":"email","to":"p0@example.org","rule":"near","params":{"place":"graz"}}`)
	const german, data = `subscriber.locale.startsWith('de')`, `{"title":"x","level":4,"place":"Graz"}`

	run := into[client.DryRun](t, s.mustRun(data, "match", "story", "-", "--dry-run", "--json", "--audience", german))
	if run.Matched != 3 || run.Outside != 2 || run.Messages != 2 {
		t.Errorf("a dry run: %+v", run)
	}

	publish := func(title, filter string) string {
		t.Helper()
		printed := strings.Fields(s.mustRun(strings.Replace(data, `"x"`, fmt.Sprintf("%q", title), 1), "publish", "story", "-", "--audience", filter))
		return printed[0]
	}
	event := publish("german", german)
	b := s.http.completed(event)
	if b.Matched != 3 || b.Messages != 2 || b.Audience == nil || b.Audience.Outside != 2 || b.Audience.Filter != german {
		t.Errorf("published: %+v, audience %+v", b, b.Audience)
	}
	if text := s.mustRun("", "trace", event); !strings.Contains(text, german) || !strings.Contains(text, "2 more are not in it") {
		t.Errorf("the trace: %s", text)
	}
	if e := into[fanfare.Explanation](t, s.mustRun("", "explain", "s2", event, "--json")); e.Wanted || !strings.Contains(e.Summary, "not in the audience") {
		t.Errorf("explained: %+v", e)
	}
	if e := into[fanfare.Explanation](t, s.mustRun("", "explain", "s1", event, "--json")); !e.Wanted {
		t.Errorf("explained: %+v", e)
	}

	for filter, want := range map[string][]string{
		`subscriber.attributes.region == 'Paris'`:                 {"p2@example.org"},
		`sub.from >= 2.0`:                                         {"p2@example.org", "p3@example.org"},
		`!has(subscriber.locale)`:                                 {"p3@example.org"},
		`has(sub.place) && subscriber.attributes.region != 'Rom'`: {"p0@example.org"},
		`subscriber.locale == 'it'`:                               nil,
	} {
		before := r.total()
		b := s.http.completed(publish("to "+filter[:8], filter))
		if int(b.Messages) != len(want) || r.total()-before != len(want) {
			t.Errorf("%s: %d messages, %d mails, want %v", filter, b.Messages, r.total()-before, want)
		}
	}
	for _, mail := range r.of("p2@example.org") {
		if strings.Contains(field(mail, "Subject"), "german") {
			t.Errorf("who is not in the audience got %s", mail)
		}
	}
}

// An audience comes with each event, in every format, and is refused with its place.
func TestAnAudienceIsCheckedAtIntake(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nsubscriber_schema: {type: object, properties: {region: {type: string}}, additionalProperties: false}\n")
	s.http.subscribe(`{"topic":"story","channel":"email","to":"a@example.org","locale":"de"}`)
	s.http.subscribe(`{"topic":"story","channel":"email","to":"b@example.org","locale":"fr"}`)

	const structured = `{"specversion":"1.0","id":"%s","source":"/t","type":"story","data":{"title":"x"},"audiencefilter":%s}`
	s.http.must(202, "POST", "/v1/events", "application/cloudevents+json", fmt.Sprintf(structured, "one", `"subscriber.locale == 'de'"`))
	s.http.must(202, "POST", "/v1/topics/story/events", plain, `{"title":"y"}`, "Ce-Specversion", "1.0", "Ce-Id", "two", "Ce-Source", "/t", "Ce-Type", "story", "Ce-Audiencefilter", "subscriber.locale == 'fr'")
	s.http.must(202, "POST", "/v1/topics/story/events?audience_filter=subscriber.locale%3D%3D%27de%27&id=/id", lines, `{"title":"z"}`+"\n"+`{"title":"w"}`)
	for _, id := range []string{"one", "two"} {
		if b := s.http.completed(id); b.Messages != 1 || b.Audience.Outside != 1 {
			t.Errorf("%s: %d messages, %+v", id, b.Messages, b.Audience)
		}
	}

	wrong := s.http.refused(422, "POST", "/v1/topics/story/events?audience_filter=subscriber.attributes.regoin%3D%3D%27x%27", plain, `{"title":"x"}`)
	if wrong.Pointer != "/audience_filter" || wrong.Line != 1 || wrong.Column == 0 || !strings.Contains(wrong.Hint, "region") {
		t.Errorf("an attribute that nobody has: %+v", wrong)
	}
	s.http.refused(422, "POST", "/v1/topics/story/match?audience_filter=event.title", plain, `{"title":"x"}`)
	s.http.refused(422, "POST", "/v1/events", "application/cloudevents+json", fmt.Sprintf(structured, "three", `7`))
	batch := "[" + fmt.Sprintf(structured, "four", `"true"`) + "," + fmt.Sprintf(structured, "five", `"nonsense"`) + "]"
	s.http.refused(422, "POST", "/v1/events", "application/cloudevents-batch+json", batch)
	s.http.must(404, "GET", "/v1/events/four", "", "")
}
