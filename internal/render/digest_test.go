package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/liquid"
)

// newDigest returns a mailing about several events. Item n has the nth data.
func newDigest(t tester, src Source, data ...string) MailBatch {
	t.Helper()
	m := newMailing(t, src, "")
	at := m.Event.Time
	m.Event, m.Topic = nil, ""
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		t.Fatal(err)
	}
	m.Digest = &Digest{Due: time.Date(2026, 6, 1, 7, 0, 0, 0, time.UTC), Cadence: "daily 08:00", Zone: zone, Item: func(number uint32) *Item {
		return &Item{
			Event: &fanfare.Event{ID: fmt.Sprint("e-", number), Source: "/s", Type: "news", Time: at.Add(time.Duration(number) * time.Minute), Data: json.RawMessage(data[number])},
			Topic: "news",
		}
	}}
	return m
}

// told returns a recipient of items: the even ones match the first subscription, the odd ones
// the second.
func told(more int, numbers ...uint32) *Recipient {
	r := newRecipient()
	r.Omitted = more
	for _, n := range numbers {
		r.Items = append(r.Items, RecipientItem{Number: n, Subscriptions: []uint32{n % 2}})
	}
	return r
}

func textOf(t tester, w *MailWriter, r *Recipient) string {
	t.Helper()
	p, err := w.Preview(r)
	if err != nil {
		t.Fatal(err)
	}
	return p.Subject + "|" + p.Text + "|" + p.HTML
}

func TestDigestHasTheItemsOfEachRecipient(t *testing.T) {
	m := newDigest(t, Source{
		Subject: "{{ count }} news, first: {{ items.first.event.title }}",
		Text: "{{ digest.cadence }} {{ digest.due }} {{ digest.time_zone }} {{ digest.service }} for {{ subscriber.id }}\n" +
			"{% for item in items %}- {{ item.event.title }} ({{ item.meta.id }}, {{ item.meta.topic }})\n{% endfor %}" +
			"{% if more > 0 %}and {{ more }} more\n{% endif %}",
		HTML: "{% for item in items %}<p>{{ forloop.index }} {{ item.event.title }} {{ item.subscription.rule }}</p>{% endfor %}",
	}, `{"title":"A"}`, `{"title":"B & C"}`, `{"title":"D"}`)
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	head := "daily 08:00 2026-06-01T08:00:00+01:00 Europe/London earthquakes for person-1\n"
	for _, c := range []struct {
		of   *Recipient
		want string
	}{
		{told(0, 0, 2), "2 news, first: A|" + head + "- A (e-0, news)\n- D (e-2, news)\n|<p>1 A near</p><p>2 D near</p>"},
		{told(3, 1, 2), "5 news, first: B & C|" + head + "- B & C (e-1, news)\n- D (e-2, news)\nand 3 more\n|<p>1 B &amp; C </p><p>2 D near</p>"},
		{told(0, 2), "1 news, first: D|" + head + "- D (e-2, news)\n|<p>1 D near</p>"},
		{told(0, 0, 2), "2 news, first: A|" + head + "- A (e-0, news)\n- D (e-2, news)\n|<p>1 A near</p><p>2 D near</p>"},
	} {
		if got := textOf(t, w, c.of); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
	parse(t, write(t, m, told(0, 0, 1, 2)).Body)
}

// TestDigestDoesNotDependOnEarlierMessages checks the cache of rendered items: each message
// equals one that is rendered whole and alone.
func TestDigestDoesNotDependOnEarlierMessages(t *testing.T) {
	pieces := []string{
		"{% for item in items %}[{{ item.event.a }}{% if item.event.b %}!{% endif %}]{% endfor %}",
		"{% for item in items %}{{ forloop.index }}{% unless forloop.last %},{% endunless %}{% endfor %}",
		"{% for item in items %}{{ item.event.a }}{% break %}{% endfor %}",
		"{% for item in items %}{% cycle 'x', 'y' %}{% endfor %}",
		"{% for item in items reversed %}{{ item.event.a }}{% endfor %}",
		"{% for item in items limit: 1 %}{{ item.meta.id }}{% endfor %}",
		"{% for item in items %}{{ count }}{{ items.first.event.a }}{% endfor %}",
		"{% for item in items %}{% for other in items %}{{ other.event.a }}{{ item.event.a }}{% endfor %}{% endfor %}",
		"{% for item in items %}{% for x in item.event.list %}{{ x }}{{ forloop.index }}{% endfor %}{% endfor %}",
		"{% for item in items %}{{ item.subscription.id }}{{ item.subscriptions.size }}{% endfor %}",
		"{% for item in items %}{{ subscriber.id }}{{ item.event.a }}{% endfor %}",
		"{% for item in items %}{% assign a = item.event.a %}{{ a }}{% endfor %}",
		"{% for item in items %}{% continue %}x{% endfor %}",
		"{% for item in items %}{{ item.event.c | default: 'none' }}{% else %}nothing{% endfor %}",
		"{% assign n = items.size %}{{ n }}", "{% assign all = items %}{% for i in all %}{{ i.event.a }}{% endfor %}",
		"{{ items | map: 'event' | json }}", "{{ items.last.event.a }}", "{{ items[0].meta.time | date: '%H' }}",
		"{% if more > 0 %}{{ more }} of {{ count }}{% endif %}", "{{ items.size }}", "{{ count | times: 2 }}",
		"{{ subscriber.id }}", "{{ digest.due }}", "{% tablerow item in items %}{{ item.event.a }}{% endtablerow %}", " text\n",
	}
	seen := map[liquid.Sharing]int{}
	rapid.Check(t, func(t *rapid.T) {
		source := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 4).Draw(t, "pieces"), "")
		data := make([]string, 6)
		for i := range data {
			data[i] = fmt.Sprintf(`{"a":%q,"b":%v,"list":[%d,"<"]}`, strings.Repeat("v&", rapid.IntRange(0, 2).Draw(t, "a")), rapid.Bool().Draw(t, "b"), i)
		}
		m := newDigest(t, Source{Subject: strings.ReplaceAll("s "+source, "\n", " "), Text: "t " + source, HTML: "h " + source}, data...)
		for _, p := range m.Template.text.Slots {
			seen[p.Sharing]++
		}
		w, err := m.Writer()
		if err != nil {
			t.Fatal(err)
		}
		for range 6 {
			numbers := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 5), 1, 6, rapid.ID).Draw(t, "items")
			slices.Sort(numbers)
			r := told(rapid.IntRange(0, 2).Draw(t, "more"), numbers...)
			r.ID = rapid.StringMatching("[a-z<]{1,3}").Draw(t, "id")
			alone := m
			alone.Template = everyTime(m.Template)
			w2, err := alone.Writer()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err1 := w.Write(nil, r)
			want, _, err2 := w2.Write(nil, r)
			if (err1 == nil) != (err2 == nil) || !bytes.Equal(got.Body, want.Body) {
				t.Fatalf("%q: after others %v\n%s\nalone %v\n%s", source, err1, got.Body, err2, want.Body)
			}
		}
	})
	for _, r := range []liquid.Sharing{liquid.SharedPerItem, liquid.SharedByCount, liquid.SharedByItems, liquid.Personal} {
		if seen[r] == 0 {
			t.Errorf("no piece had the reach %d", r)
		}
	}
}

// everyTime returns the template with every part rendered whole for each recipient, without a
// cache.
func everyTime(t *Template) *Template {
	whole := undivided(t)
	for _, p := range []*templatePart{whole.subject, whole.text, whole.html} {
		p.Sharing = liquid.Personal
	}
	return whole
}

func TestDigestCacheIsBounded(t *testing.T) {
	big := fmt.Sprintf(`{"title":%q}`, strings.Repeat("x", maxCachedBytes/3))
	m := newDigest(t, Source{Text: "{% for item in items %}{{ item.event.title }}\n{% endfor %}"}, big, big, big, big, big, big)
	w, err := m.Writer()
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint32(12) {
		if _, _, err := w.Write(nil, told(0, n%6)); err != nil {
			t.Fatal(err)
		}
		if kept := w.textPart.cache[0]; kept.bytes > maxCachedBytes || w.items.bytes > maxDecodedBytes {
			t.Fatalf("%d bytes of text and %d of data are kept", kept.bytes, w.items.bytes)
		}
	}
}

func TestTemplateIsForOneEventOrForADigest(t *testing.T) {
	for source, wrong := range map[string]string{
		"{{ event.title }} {{ count }}":                                "event.title: the template also uses count, and a digest contains several events",
		"{% for item in items %}{{ item.evnt.a }}{% endfor %}":         "unknown variable item.evnt.a",
		"{% for item in items %}{{ item.meta.idd }}{% endfor %}":       "unknown variable item.meta.idd",
		"{{ items.title }}":                                            "unknown variable items.title",
		"{{ digest.dew }}":                                             "unknown variable digest.dew",
		"{% for item in items %}{{ item.subscription.i }}{% endfor %}": "unknown variable item.subscription.i",
	} {
		_, err := Compile(Source{Name: "x", Subject: "s", Text: source})
		if err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %v, want %s", source, err, wrong)
		}
	}
	several, err := Compile(Source{Name: "x", Subject: "s", Text: "a\n{{ more }}"})
	if err != nil || !several.Digest() {
		t.Fatal(err)
	}
	if err := several.Check(nil, nil); err == nil || !strings.Contains(err.Error(), "this variable exists only in digests") || wrongAt(err) != "/templates/x/text" {
		t.Errorf("a topic may use it: %v", err)
	}
	m := newMailing(t, Source{Text: "x"}, "{}")
	m.Template = several
	if _, err := m.Writer(); err == nil {
		t.Error("a digest was made of one event")
	}
	one, err := Compile(Source{Name: "x", Subject: "s", Text: "{{ meta.id }}"})
	if err != nil || one.Digest() {
		t.Fatal(err)
	}
	if err := one.CheckDigest(nil); err == nil || !strings.Contains(err.Error(), "a digest has several events") {
		t.Errorf("digests may use it: %v", err)
	}
	own, err := Compile(Source{Name: "x", Subject: "s", Text: "{% assign count = event.n %}{% for more in event.list %}{{ more }}{% endfor %}{{ count }}"})
	if err != nil || own.Digest() || own.Check(nil, nil) != nil {
		t.Errorf("a template may call its own variables so: %v", err)
	}
}

func TestDigestTemplateIsCheckedAgainstItsTopics(t *testing.T) {
	quakes := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"mag":{"type":"number"}}}`)
	news := json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}}}`)
	for source, wrong := range map[string]string{
		"{{ item.event.title }}":                                 "",
		"{% if item.event.mag %}{{ item.event.mag }}{% endif %}": "",
		"{{ item.event.titel }}":                                 "unknown field item.event.titel",
	} {
		template, err := Compile(Source{Name: "x", Subject: "{{ items[0].event.title }}", Text: "{% for item in items %}" + source + "{% endfor %}"})
		if err != nil {
			t.Fatal(err)
		}
		err = template.CheckDigest([]json.RawMessage{news, quakes})
		if wrong == "" && err != nil || wrong != "" && (err == nil || !strings.Contains(err.Error(), wrong)) {
			t.Errorf("%s: got %v, want %q", source, err, wrong)
		}
		if _, _, _, err := template.DryRun(news); wrong == "" && err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	template, err := Compile(Source{Name: "x", Subject: "s", Text: "{% for item in items %}{{ item.event.mag }}{% endfor %}"})
	if err != nil {
		t.Fatal(err)
	}
	if err := template.CheckDigest([]json.RawMessage{news}); err == nil {
		t.Error("the check accepts mag, which no topic has")
	}
}
