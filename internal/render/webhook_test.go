package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
)

func posted(data string) *fanfare.Event {
	return &fanfare.Event{
		ID: "q-1", Source: "/exchange", Type: "price", Subject: "ACME", Time: time.Date(2026, 11, 20, 8, 15, 0, 0, time.UTC), Data: json.RawMessage(data),
		Extensions: map[string]json.RawMessage{"tenant": json.RawMessage(`"t\"1"`), "level": json.RawMessage(`3`)},
	}
}

func receiver() *Recipient {
	return &Recipient{
		Delivery: fanfare.DeliveryRef{Day: 20777, Manifest: 64, Position: 3}, Address: "https://hooks.example.org/prices", ID: `device "7"`,
		Subscriptions: []Subscription{
			{ID: "sub-1", Rule: "above", Params: json.RawMessage(`{"price":12}`), Data: json.RawMessage(`{"why":"asked"}`)}, {ID: "mine"},
		},
	}
}

func wrongAt(err error) string {
	e, _ := errors.AsType[*fanfare.Error](err)
	return e.Pointer
}

func written(t *testing.T, p WebhookBatch, r *Recipient) string {
	t.Helper()
	w, err := p.Writer()
	if err != nil {
		t.Fatal(err)
	}
	message, out, err := w.Write([]byte("before"), r)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(message.Body) || string(out) != "before"+string(message.Body) || message.To != r.Address || message.Delivery != r.Delivery {
		t.Fatalf("%+v and %q", message, out)
	}
	return string(message.Body)
}

func TestWebhookDocumentHasEventAndSubscriptions(t *testing.T) {
	got := written(t, WebhookBatch{Event: posted(`{"price":12.50}`), EventRef: fanfare.EventRef{Day: 20777, Seq: 64}, Topic: "price", Service: "stocks"}, receiver())
	want := `{"type":"price","timestamp":"2026-11-20T08:15:00Z","data":{"event":{"specversion":"1.0","id":"q-1","source":"/exchange","type":"price","subject":"ACME",` +
		`"time":"2026-11-20T08:15:00Z","level":3,"tenant":"t\"1","data":{"price":12.50}},"service":"stocks","topic":"price","ref":"` + fanfare.EventRef{Day: 20777, Seq: 64}.String() + `",` +
		`"subscriber":{"id":"device \"7\""},"subscriptions":[{"id":"sub-1","rule":"above","params":{"price":12},"data":{"why":"asked"}},{"id":"mine"}]}}`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWebhookDocumentHasDirectMessage(t *testing.T) {
	template, err := Compile(Source{Name: "content", Subject: "Hello {{ sub.name }}", Text: "Line \"one\"\nfor {{ sub.name }}\n", HTML: "<p>{{ sub.name }}</p>"})
	if err != nil {
		t.Fatal(err)
	}
	r := receiver()
	r.Subscriptions, r.Data = nil, json.RawMessage(`{"name":"A \\ <B>"}`)
	got := written(t, WebhookBatch{Template: template, Direct: true, Event: posted(`{}`)}, r)
	var document struct {
		Data struct {
			Message       map[string]string
			Recipient     map[string]string
			Subscriptions []any
		}
	}
	if err := json.Unmarshal([]byte(got), &document); err != nil {
		t.Fatal(err)
	}
	d := document.Data
	if d.Message["subject"] != `Hello A \ <B>` || d.Message["text"] != "Line \"one\"\nfor A \\ <B>\n" || d.Message["html"] != "<p>A \\ &lt;B&gt;</p>" || d.Recipient["name"] != `A \ <B>` || d.Subscriptions == nil {
		t.Errorf("got %s", got)
	}
}

func TestTemplateWritesTheWebhookDocument(t *testing.T) {
	for source, want := range map[string]string{
		`{"text":"{{ event.title }} for {{ subscriber.id }}"}`:                     `{"text":"a \"b\" \\ c\n for device \"7\""}`,
		`{"event": {{ event | json }}, "price": {{ event.price }}}`:                `{"event": {"price":12.5,"title":"a \"b\" \\ c\n"}, "price": 12.5}`,
		`[{% for s in subscriptions %}"{{ s.id }}",{% endfor %}null]`:              `["sub-1","mine",null]`,
		`{"p": {{ subscription.params.price }}, "m": "{{ meta.subject }}"}`:        `{"p": 12, "m": "ACME"}`,
		`{"up": "{{ subscription.params.name | default: 'no "name"' | upcase }}"}`: `{"up": "NO \"NAME\""}`,
	} {
		template, err := Compile(Source{Name: "hook", JSON: source})
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := written(t, WebhookBatch{Template: template, Event: posted(`{"title":"a \"b\" \\ c\n","price":12.5}`)}, receiver()); got != want {
			t.Errorf("%s: got %s, want %s", source, got, want)
		}
	}
}

func TestInvalidWebhookDocumentIsRefused(t *testing.T) {
	template, err := Compile(Source{Name: "hook", JSON: `{"price": {{ event.price }}}`})
	if err != nil {
		t.Fatal(err)
	}
	w, err := WebhookBatch{Template: template, Event: posted(`{"price":"a lot"}`)}.Writer()
	if err != nil {
		t.Fatal(err)
	}
	dst := []byte("before")
	_, out, err := w.Write(dst, receiver())
	if err == nil || !bytes.Equal(out, dst) || !strings.Contains(err.Error(), "not valid JSON") || wrongAt(err) != "/templates/hook/json" {
		t.Errorf("got %v and %q", err, out)
	}
	if _, _, _, err := template.DryRun([]byte(`{"type":"object","properties":{"price":{"type":"number"}},"required":["price"]}`)); err != nil {
		t.Errorf("with a number it is one: %v", err)
	}
	if _, _, _, err := template.DryRun([]byte(`{"type":"object","properties":{"price":{"type":"number"}}}`)); err == nil || !strings.Contains(err.Error(), "tried with an event with only the fields that the schema requires") {
		t.Errorf("without a price it is none: %v", err)
	}
	if _, _, _, err := template.DryRun([]byte(`{"type":"object","properties":{"price":{"type":"string","examples":["a lot"]}}}`)); err == nil {
		t.Error("the dry run accepts a document that the schema makes invalid")
	}
	if _, err := (MailBatch{Template: template, Event: posted(`{}`), Domain: "example.org"}).Writer(); err == nil {
		t.Error("a mail was made of a template for programs")
	}
}

func TestWebhookDocumentOfADigestHasItsEvents(t *testing.T) {
	m := newDigest(t, Source{Text: "x"}, `{"price":1}`, `{"price":2.50}`)
	p := WebhookBatch{Digest: m.Digest, EventRef: fanfare.EventRef{Day: 20777, Seq: 64}, Service: "stocks"}
	r := receiver()
	r.Items, r.Omitted = []RecipientItem{{0, []uint32{0}}, {1, []uint32{0, 1}}}, 3
	ref := fanfare.EventRef{}.String()
	want := `{"type":"digest","timestamp":"2026-06-01T07:00:00Z","data":{"digest":{"due":"2026-06-01T08:00:00+01:00","cadence":"daily 08:00","time_zone":"Europe/London"},` +
		`"service":"stocks","ref":"` + p.EventRef.String() + `","subscriber":{"id":"device \"7\""},` +
		`"subscriptions":[{"id":"sub-1","rule":"above","params":{"price":12},"data":{"why":"asked"}},{"id":"mine"}],"count":5,"more":3,"items":[` +
		`{"event":{"specversion":"1.0","id":"e-0","source":"/s","type":"news","time":"2026-11-20T09:30:00Z","data":{"price":1}},"topic":"news","ref":"` + ref + `","subscriptions":["sub-1"]},` +
		`{"event":{"specversion":"1.0","id":"e-1","source":"/s","type":"news","time":"2026-11-20T09:31:00Z","data":{"price":2.50}},"topic":"news","ref":"` + ref + `","subscriptions":["sub-1","mine"]}]}}`
	if got := written(t, p, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	template, err := Compile(Source{Name: "hook", JSON: `[{% for item in items %}{{ item.event.price }},{% endfor %}{{ more }}]`})
	if err != nil {
		t.Fatal(err)
	}
	p.Template = template
	if got := written(t, p, r); got != "[1,2.5,3]" {
		t.Errorf("the template's document is %s", got)
	}
}
