package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/store/storetest"
)

const quakes = `
service: earthquakes
channels:
  email: {driver: smtp, relay: "127.0.0.1:2525", from: "Earthquake Watch <quakes@example.org>", rate: unlimited}
topics:
  earthquake:
    schema_file: schema.json
    lane: urgent
    template: quake
    rules:
      - name: near
        when: "event.mag >= sub.min_mag && contains_ci(event.place, sub.place)"
        params: {min_mag: number, place: string}
        template: quake-near
templates:
  quake: {subject: "Quake {{ event.place }}", text_file: quake.txt.liquid}
  quake-near: {subject: "Near you", text: "Hello"}
`

func writeFiles(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"schema.json":      `{"type":"object","required":["mag"],"properties":{"mag":{"type":"number"},"place":{"type":"string"},"depth":{"type":"number"}}}`,
		"quake.txt.liquid": "A quake of {{ event.mag }}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func summary(d catalog.Diff) string {
	var parts []string
	for _, c := range d.Changes {
		part := c.Action + " " + c.Kind + " " + c.Name
		for _, f := range c.Fields {
			part += " " + f.Field
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

func TestApplyMakesItSoOnceAndASecondTimeChangesNothing(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, storetest.Place(t))
	d, err := document.ParseDocument([]byte(quakes), writeFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	want := "create service earthquakes; create channel email; create template quake; create template quake-near; create topic earthquake; create rule earthquake/near"
	if diff, err := r.Plan(ctx, d); err != nil || summary(diff) != want {
		t.Fatalf("plan: %s, %v", summary(diff), err)
	}
	if _, ok := r.Topic("earthquakes", "earthquake"); ok {
		t.Fatal("the plan changed something")
	}
	if diff, err := r.Apply(ctx, d); err != nil || summary(diff) != want {
		t.Fatalf("apply: %s, %v", summary(diff), err)
	}
	if diff, err := r.Apply(ctx, d); err != nil || len(diff.Changes) != 0 {
		t.Fatalf("again: %s, %v", summary(diff), err)
	}
	topic, ok := r.Topic("earthquakes", "earthquake")
	if !ok || topic.Lane != fanfare.Urgent || len(topic.Rules) != 1 || topic.Rules[0].Template != "quake-near" {
		t.Errorf("%+v", topic)
	}
	number, _ := r.TemplateVersion("earthquakes", "quake")
	if src, ok := r.Template(number); !ok || src.Version != 1 || src.Text != "A quake of {{ event.mag }}\n" {
		t.Errorf("%+v", src)
	}
}

func TestApplyChangesWhatIsNamedAndKeepsTheRest(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	before, _ := r.ChannelNamed("notify", "email")
	steps := []struct{ doc, want string }{
		{"service: notify\ntemplates: {a: {subject: S, text: one}}", "create template a"},
		{"service: notify\ntemplates: {a: {subject: S, text: two}}", "update template a text"},
		{"service: notify\nchannels: {email: {driver: smtp, relay: 'mx:25', from: a@example.org}}", "update channel email from rate relay"},
		{"service: notify\ntopics: {change: {template: a, schema: {properties: {title: {}, mag: {}, new: {}}}, rules: [{name: strong, when: event.mag >= 7.0}]}}",
			"update topic change schema template rules; update rule change/strong when"},
		{"service: notify\ntopics: {change: {template: a, schema: {properties: {title: {}, mag: {}, new: {}}}, rules: [{name: near, delete: true}]}}", "delete rule change/near"},
		{"service: notify\ntopics: {other: {delete: true}, never: {delete: true}}", "delete topic other"},
		{"service: notify\nchannels: {print: {delete: true}}", "delete channel print"},
	}
	for _, s := range steps {
		if got := summary(apply(t, r, s.doc)); got != s.want {
			t.Errorf("%s\n got %s\nwant %s", s.doc, got, s.want)
		}
	}
	if after, ok := r.Channel(before.Number); !ok || after.Relay != "mx:25" || after.Rate.String() != "30/s" {
		t.Errorf("%+v", after)
	}
	number, _ := r.TemplateVersion("notify", "a")
	if src, _ := r.Template(number); src.Version != 2 || src.Text != "two" {
		t.Errorf("%+v", src)
	}
	if old, ok := r.Template(number - 1); !ok || old.Text != "one" {
		t.Errorf("the first version is gone: %+v", old)
	}
	if _, ok := r.Topic("notify", "other"); ok {
		t.Error("the deleted topic is there")
	}
	printer := before.Number + 1
	if c, ok := r.Channel(printer); !ok || c.Name != "print" {
		t.Error("what is under way does not find its deleted channel")
	}
	apply(t, r, weather)
	if again, ok := r.ChannelNamed("notify", "print"); !ok || again.Number != printer {
		t.Errorf("made again, the channel is %+v", again)
	}
}

func TestSubscriptionsComeInWhileTheConfigurationChanges(t *testing.T) {
	ctx := context.Background()
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	var wg sync.WaitGroup
	const callers, each = 4, 50
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				results := make([]people.PutResult, 1)
				err := r.PutSubscriptions(ctx, "notify", []people.SubscriptionPut{{Topic: "change", Channel: "email",
					To: fmt.Sprintf("p%d-%d@example.org", c, i), Filter: fmt.Sprintf("mag > %d.0", i)}}, results)
				if err != nil || results[0].Err != nil {
					t.Error(err, results[0].Err)
				}
			}
		})
	}
	for i := range 30 {
		apply(t, r, fmt.Sprintf("service: notify\ntopics: {change: {title: T%d, schema: {properties: {title: {}, mag: {}, n%d: {}}}}}", i, i))
	}
	wg.Wait()
	if n := index.Len(condition.Key{Service: "notify", Topic: "change"}); n != callers*each {
		t.Errorf("the index has %d", n)
	}
	if topic, _ := r.Topic("notify", "change"); topic.Title != "T29" || len(topic.Rules) != 2 {
		t.Errorf("%+v", topic)
	}
}

func TestEventDataIsCheckedWithAPointer(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	d, err := document.ParseDocument([]byte(quakes), writeFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(context.Background(), d); err != nil {
		t.Fatal(err)
	}
	topic, _ := r.Topic("earthquakes", "earthquake")
	cases := []struct{ data, pointer, text string }{
		{`{"mag":5.1,"place":"x"}`, "", ""},
		{`{"place":"x"}`, "/data/mag", "missing"},
		{`{"mag":"strong"}`, "/data/mag", "want number"},
		{`{"mag":1,"place":3}`, "/data/place", "want string"},
		{`[]`, "/data", "want object"},
		{`{`, "/data", "not valid JSON"},
		{``, "/data", "want object"},
	}
	for _, c := range cases {
		err := topic.ValidateData(json.RawMessage(c.data))
		if c.text == "" {
			if err != nil {
				t.Errorf("%s: %v", c.data, err)
			}
			continue
		}
		if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != c.pointer || !strings.Contains(e.Error(), c.text) {
			t.Errorf("%s: %v", c.data, err)
		}
	}
}
