package server_test

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Recipients with five languages, some with a watch, get one event over a multicast channel.
func TestRecipientsGetTheirLanguage(t *testing.T) {
	s := start(t, sink.Inject{})
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited, multicast: 10, connections: 2}
topics:
  story:
    schema: {type: object, required: [when, n], properties: {when: {type: string, format: date-time}, n: {type: integer}}}
    template: story
templates:
  story:
    subject: "Story"
    text: "On {{ event.when | date: 'long' }}: {{ event.n | plural: 'one: # storm', 'other: # storms' }}."
    locales:
      cy: {subject: "Stori", text: "Ar {{ event.when | date: 'full' }}."}
      ja: {text: "{{ event.when | date: 'long' }}", devices: {watch: {text: "{{ event.when | time }}"}}}
`, s.addr))
	languages := []struct{ locale, zone, device, subject, text string }{
		{"", "", "", "Story", "On November 20, 2026: 2 storms."},
		{"en-GB", "", "watch", "Story", "On 20 November 2026: 2 storms."},
		{"cy", "Asia/Tokyo", "", "Stori", "Ar Dydd Sadwrn, 21 Tachwedd 2026."},
		{"ja-JP", "Asia/Tokyo", "", "Story", "2026=E5=B9=B411=E6=9C=8821=E6=97=A5"},
		{"ja", "Asia/Tokyo", "watch", "Story", "5:00"},
	}
	var people strings.Builder
	for i := range 100 {
		l := languages[i%len(languages)]
		fmt.Fprintf(&people, `{"topic":"story","channel":"email","to":"person%d@example.org","filter":"true","locale":%q,"time_zone":%q,"attributes":{"device":%q}}`+"\n", i, l.locale, l.zone, l.device)
	}
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people.String())
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"when":"2026-11-20T20:00:00Z","n":2}`)
	s.eventually("100 recipients", func() bool { return s.sink.Stats().Unique == 100 })
	told := 0
	for _, m := range s.sink.Messages() {
		for _, to := range m.To {
			var person int
			if _, err := fmt.Sscanf(strings.Trim(to, "<>"), "person%d@example.org", &person); err != nil {
				t.Fatal(err)
			}
			l, body := languages[person%len(languages)], string(m.Body)
			if !strings.Contains(body, "Subject: "+l.subject+"\r\n") || !strings.HasSuffix(body, "\r\n\r\n"+l.text+"\r\n") {
				t.Errorf("%s, of %+v, got\n%s", to, l, body)
			}
			told++
		}
	}
	if got := s.sink.Stats(); told < 20 || got.Messages > 50 || got.Duplicates > 0 {
		t.Errorf("%d messages, of which those to %d people are looked at, and %d duplicates", got.Messages, told, got.Duplicates)
	}
	if draft := s.must(200, "POST", "/v1/templates/story/preview", "application/json",
		`{"template":{"subject":"s","text":"base","locales":{"cy":{"text":"Cymraeg"}}},"subscriber":"person2@example.org"}`); !strings.Contains(draft, `"text":"Cymraeg"`) {
		t.Errorf("the preview of the draft is %s", draft)
	}
	if shown := s.must(200, "POST", "/v1/templates/story/preview", "application/json",
		`{"data":{"when":"2026-11-20T20:00:00Z","n":1},"subscriber":"person2@example.org","locale":"ja","time_zone":"Asia/Tokyo","device":"watch"}`); !strings.Contains(shown, `"text":"5:00"`) {
		t.Errorf("the preview is %s", shown)
	}
	s.must(422, "POST", "/v1/templates/story/preview", "application/json", `{"time_zone":"Mars"}`)
	if one := s.must(200, "GET", "/v1/templates/story", "", ""); !strings.Contains(one, `"cy":{"subject":"Stori"`) || !strings.Contains(one, `"devices":{"watch":{`) {
		t.Errorf("the template is shown as %s", one)
	}
}
