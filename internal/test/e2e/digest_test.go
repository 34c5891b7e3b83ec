package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// digests has the topic's events told together, too.
const digests = `service: news
topics:
  story:
    template: story
    digest: {template: stories, key: place, max: 2}
    rules:
      - {name: near, when: "contains_ci(event.place, sub.place)", params: {place: string}, template: near}
templates:
  stories:
    subject: "{{ count }} stories for {{ subscriber.address }}"
    text: |
      {% for item in items %}<{{ item.event.title }}> of {{ item.meta.topic }} for {{ item.subscription.id }}
      {% endfor %}{% if more > 0 %}and {{ more }} more
      {% endif %}({{ digest.cadence }}) {{ unsubscribe_url }}
`

// faraway is a cadence that is not due while a test runs.
func faraway() string {
	return "weekly " + strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Weekday().String()) + " 08:00"
}

// Traces, exports and reports find events that wait for a digest and events that were sent in one.
func TestEventsOfADigestAreFoundEverywhere(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, digests)
	far := faraway() + " in Europe/London"
	for id, cadence := range map[string]string{"now": "immediate", "soon": "window 2s", "late": far} {
		s.http.subscribe(fmt.Sprintf(`{"id":%q,"topic":"story","channel":"email","to":"%s@example.org","subscriber":%q,"cadence":%q}`, id, id, id+"-person", cadence))
	}

	run := into[client.DryRun](t, s.mustRun(`{"title":"x"}`, "match", "story", "-", "--dry-run", "--json"))
	if run.Matched != 3 || run.Messages != 1 || len(run.Gathered) != 2 || run.Gathered[1].Recipients != 1 || run.Gathered[1].Cadence != far {
		t.Errorf("the dry run: %+v", run)
	}

	event := s.http.publish(`{"title":"first","place":"Graz"}`)
	if b := s.http.completed(event); b.Messages != 1 || b.Matched != 3 || len(b.Gathered) != 2 {
		t.Errorf("the event set off %d messages for %d subscriptions, and %+v", b.Messages, b.Matched, b.Gathered)
	}
	if text := s.mustRun("", "trace", event); !strings.Contains(text, "wait for "+far+", due ") {
		t.Errorf("the trace does not say what waits:\n%s", text)
	}
	if text := s.mustRun("", "status"); !strings.Contains(text, "DIGESTS OF") || !strings.Contains(text, far) {
		t.Errorf("the status does not say what waits:\n%s", text)
	}
	if e := into[fanfare.Explanation](t, s.mustRun("", "explain", "late", event, "--json")); !e.Wanted || !strings.Contains(fmt.Sprint(e.Checks), "the event waits for the next digest ("+far) {
		t.Errorf("explained: %+v", e)
	}
	if exported := s.mustRun("", "subscriber", "export", "late-person"); !strings.Contains(exported, `"type":"waiting"`) || !strings.Contains(exported, event) {
		t.Errorf("what is kept of a person lacks what waits:\n%s", exported)
	}

	mail := r.one("soon@example.org")
	if !strings.Contains(mail, "<first> of story for soon\r\n(window 2s) https://news.example.org/u/") || field(mail, "Subject") != "1 stories for soon@example.org" {
		t.Errorf("the digest is %s", mail)
	}
	var digest string
	eventually(t, "the trace of the event says in which digest it went out", func() bool {
		for _, g := range s.http.broadcast(event).Gathered {
			if g.Cadence == "window 2s" {
				digest = g.Digest
			}
		}
		return digest != ""
	})
	b := s.http.completed(digest)
	if b.Kind != fanfare.KindDigest || b.Messages != 1 || b.Digest == nil || b.Digest.Cadence != "window 2s" || b.Service != "news" {
		t.Errorf("the digest is the broadcast %+v", b)
	}
	if text := s.mustRun("", "trace", digest); !strings.Contains(text, "news window 2s") {
		t.Errorf("the trace of the digest:\n%s", text)
	}
	if got := s.http.deliveries(event, "&recipient=soon@example.org"); len(got) != 1 || got[0].Event != digest || len(got[0].Events) != 1 || got[0].Events[0] != event || got[0].Template != "stories@1" {
		t.Errorf("what the person got of the event: %+v", got)
	}
	if got := s.http.deliveries(event, "&recipient=late@example.org"); len(got) != 0 {
		t.Errorf("who waits got %+v", got)
	}
	eventually(t, "the person's history", func() bool { return len(s.http.history("soon-person")) == 1 })
	if got := s.http.history("soon-person")[0]; got.Kind != fanfare.KindDigest || got.Event != digest {
		t.Errorf("the person's history has %+v", got)
	}
	var listed struct{ Broadcasts []fanfare.Broadcast }
	if err := json.Unmarshal([]byte(s.http.must(200, "GET", "/v1/broadcasts?kind=digest", "", "")), &listed); err != nil || len(listed.Broadcasts) != 1 || listed.Broadcasts[0].Event != digest {
		t.Errorf("the list of digests has %+v, %v", listed, err)
	}
	if e := into[fanfare.Explanation](t, s.mustRun("", "explain", "soon", event, "--json")); !e.Wanted || e.Delivery == nil || e.Delivery.Event != digest {
		t.Errorf("explained: %+v", e)
	}
}

// A digest has the newest of each key, the newest of too many, and nothing of what was
// ended; a pause, a kill and a restart change nothing of it.
func TestADigestIsWholeOverAPauseAndAKill(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, digests)
	for _, who := range []string{"ada", "bob"} {
		s.http.subscribe(fmt.Sprintf(`{"id":"%s-all","topic":"story","channel":"email","to":"%s@example.org","cadence":"window 3s"}`, who, who))
		s.http.subscribe(fmt.Sprintf(`{"id":"%s-graz","topic":"story","channel":"email","to":"%s@example.org","rule":"near","params":{"place":"graz"},"cadence":"window 3s"}`, who, who))
	}
	s.mustRun("", "pause", "--service", "news")
	var last string
	for i, story := range []string{`{"title":"graz 1","place":"Graz"}`, `{"title":"wien","place":"Wien"}`, `{"title":"linz","place":"Linz"}`, `{"title":"graz 2","place":"Graz"}`} {
		if last = s.http.publish(story); i == 1 {
			s.kill()
			s.start()
		}
	}
	var runs []string
	eventually(t, "all is in digests", func() bool {
		runs = runs[:0]
		gathered := s.http.broadcast(last).Gathered
		for _, g := range gathered {
			if g.Digest != "" {
				runs = append(runs, g.Digest)
			}
		}
		return len(gathered) > 0 && len(runs) == len(gathered)
	})
	s.http.must(204, "DELETE", "/v1/subscriptions/bob-all", "", "")
	s.kill()
	s.start()
	s.mustRun("", "resume", "--service", "news")
	var all struct{ Broadcasts []fanfare.Broadcast }
	if err := json.Unmarshal([]byte(s.http.must(200, "GET", "/v1/broadcasts?kind=digest", "", "")), &all); err != nil {
		t.Fatal(err)
	}
	for _, b := range all.Broadcasts {
		s.http.completed(b.Event)
	}
	told := func(who string) (text string) {
		for _, mail := range r.of(who + "@example.org") {
			_, body := headerOf(mail)
			text += body
		}
		return text
	}
	// The events may have fallen into several windows: what one digest has of a key,
	// and what it leaves out, depends on that, and not what nobody may get.
	if len(all.Broadcasts) == 1 {
		if text := told("ada"); strings.Contains(text, "graz 1") || !strings.Contains(text, "<linz> of story for ada-all") || !strings.Contains(text, "<graz 2>") || !strings.Contains(text, "and 1 more") {
			t.Errorf("ada was told %s", text)
		}
	}
	if text := told("ada"); strings.Count(text, "<graz 2>") != 1 || strings.Count(text, "<linz>") != 1 {
		t.Errorf("ada was told %s", text)
	}
	if text := told("bob"); strings.Contains(text, "linz") || strings.Contains(text, "bob-all") || strings.Count(text, "<graz 2> of story for bob-graz") != 1 {
		t.Errorf("bob, who has ended one of two subscriptions, was told %s", text)
	}
}
