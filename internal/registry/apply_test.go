package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/match"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/sqlite"
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

func summary(d registry.Diff) string {
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
	r, _ := openAt(t, t.TempDir())
	d, err := registry.ParseDocument([]byte(quakes), writeFiles(t))
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

func TestADocumentAsJSONIsTheSameDocumentWithFilesInlined(t *testing.T) {
	ctx := context.Background()
	r, _ := openAt(t, t.TempDir())
	d, err := registry.ParseDocument([]byte(quakes), writeFiles(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Apply(ctx, d); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := registry.ParseDocument(b, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	if diff, err := r.Apply(ctx, again); err != nil || len(diff.Changes) != 0 {
		t.Errorf("%s, %v\n%s", summary(diff), err, b)
	}
}

func TestApplyChangesWhatIsNamedAndKeepsTheRest(t *testing.T) {
	r, _ := openAt(t, t.TempDir())
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

func TestWhatSubscriptionsNeedCannotGo(t *testing.T) {
	ctx := context.Background()
	r, index := openAt(t, t.TempDir())
	apply(t, r, weather)
	good(t, putAll(t, r,
		registry.Put{ID: "x", Topic: "change", Channel: "print", To: "a@example.org", Filter: "mag > 4.0"},
		registry.Put{ID: "y", Topic: "change", Channel: "email", To: "a@example.org", Rule: "strong"},
	))
	cases := []struct{ doc, text string }{
		{"service: notify\ntopics: {change: {delete: true}}", "/topics/change"},
		{"service: notify\nchannels: {print: {delete: true}}", "/channels/print"},
		{"service: notify\ntopics: {change: {schema: {properties: {title: {type: string}}}, rules: [{name: near, delete: true}, {name: strong, when: title == 'x'}]}}", "mag > 4.0"},
		{"service: notify\ntopics: {other: {title: T}, change: {rules: [{name: strong, delete: true}]}}", "strong"},
	}
	for _, c := range cases {
		d, err := registry.ParseDocument([]byte(c.doc), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err = r.Apply(ctx, d); fanfare.CodeOf(err) != fanfare.Conflict || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", c.doc, err)
		}
		e, _ := errors.AsType[*fanfare.Error](err)
		if e.Line != 2 {
			t.Errorf("line %d of %v", e.Line, e)
		}
	}
	hits, err := index.Match(match.Key{Service: "notify", Topic: "change"}, json.RawMessage(`{"mag":6.5}`), nil)
	if err != nil || len(hits) != 2 {
		t.Errorf("afterwards %d match, %v", len(hits), err)
	}
	for _, id := range []string{"x", "y"} {
		if err := r.EndSubscription(ctx, "notify", id, ""); err != nil {
			t.Fatal(err)
		}
	}
	if got := summary(apply(t, r, "service: notify\ntopics: {change: {delete: true}}\nchannels: {print: {delete: true}}")); got != "delete channel print; delete topic change" {
		t.Error(got)
	}
	if s, err := r.Subscription(ctx, "notify", "x"); err != nil || s.Topic != "change" || s.State != "ended" || s.Channel != "print" {
		t.Errorf("history: %+v, %v", s, err)
	}
}

// What belongs to a driver is not called unknown where only its name is mistyped.
func TestAnUnknownDriverIsTheOnlyFault(t *testing.T) {
	for _, fields := range []string{"driver: smpt, relay: 'h:25', tls: off", "driver: flie, path: /x"} {
		_, err := registry.ParseDocument([]byte("service: a\nchannels:\n  e: {from: a@b.c, "+fields+"}"), "")
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Pointer != "/channels/e/driver" || len(e.Details) != 0 {
			t.Errorf("of %s it says %v", fields, err)
		}
	}
}

func TestEveryFaultOfADocumentHasItsPlace(t *testing.T) {
	cases := []struct {
		name, doc, pointer string
		line               int
		text               string
	}{
		{"syntax", "service: a\ntopics: {x: [}", "", 2, ""},
		{"empty", "", "", 0, "empty"},
		{"no service", "topics: {}", "", 1, "service is missing"},
		{"unknown key", "service: a\ntopcs: {}", "/topcs", 2, "did you mean topics?"},
		{"unknown field of a topic", "service: a\ntopics:\n  x:\n    shema: {}", "/topics/x/shema", 4, "did you mean schema?"},
		{"a bad name", "service: a\ntopics: {X Y: {}}", "/topics/X Y", 2, "lower case"},
		{"a literal password", "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@b.c, username: u, password: secret}", "/channels/e/password", 3, "password_env"},
		{"field of another driver", "service: a\nchannels:\n  e: {driver: file, path: /x, from: a@b.c, relay: 'h:25'}", "/channels/e/relay", 3, "unknown field"},
		{"unknown driver", "service: a\nchannels:\n  e: {driver: pigeon}", "/channels/e/driver", 3, "smtp, file"},
		{"no relay", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c}", "/channels/e", 3, "relay is missing"},
		{"bad relay", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: host}", "/channels/e/relay", 3, "host:port"},
		{"bad rate", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', rate: fast}", "/channels/e/rate", 3, "unlimited"},
		{"bad duration", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', retry: [30s, soon]}", "/channels/e/retry/1", 3, "30s"},
		{"line break in from", "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: \"a@b.c\\r\\nBcc: x@y.z\"}", "/channels/e/from", 3, "one line"},
		{"bad lane", "service: a\ntopics:\n  x: {lane: fast}", "/topics/x/lane", 3, "urgent, normal or bulk"},
		{"two sources", "service: a\ntopics:\n  t: {schema: {}, schema_file: ''}", "/topics/t", 3, "both schema and schema_file"},
		{"files where there are none", "service: a\ntemplates:\n  t: {subject: s, text_file: b}", "/templates/t/text_file", 3, "files cannot be read here"},
		{"a rule without when", "service: a\ntopics:\n  x:\n    rules:\n      - name: r", "/topics/x/rules/0", 5, "no when"},
		{"delete and more", "service: a\ntopics:\n  x: {delete: true, title: T}", "/topics/x", 3, "stands alone"},
		{"two documents", "service: a\n---\nservice: b", "", 0, "2 documents"},
		{"too deep", "service: a\ntopics: {x: {schema: " + strings.Repeat("[", 1<<20), "", 2, "levels"},
		{"too deep in dashes", "service: a\n" + strings.Repeat("- ", 1<<20), "", 2, "levels"},
		{"a list for an object", "service: a\ntopics: [x]", "/topics", 2, "must be an object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := registry.ParseDocument([]byte(c.doc), "")
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			if e.Pointer != c.pointer || e.Line != c.line || !strings.Contains(e.Error(), c.text) {
				t.Errorf("line %d, pointer %q: %v", e.Line, e.Pointer, e)
			}
		})
	}
}

func TestEveryFaultOfAPlanHasItsPlace(t *testing.T) {
	r, _ := openAt(t, t.TempDir())
	cases := []struct {
		name, doc, pointer string
		line               int
		text               string
	}{
		{"unknown template", "service: a\ntopics:\n  x: {template: nope}", "/topics/x/template", 3, "nope"},
		{"unknown template of a rule", "service: a\ntopics:\n  x:\n    rules:\n      - {name: r, when: event.a == 1, template: nope}", "/topics/x/rules/0/template", 5, "nope"},
		{"a bad schema", "service: a\ntopics:\n  x:\n    schema: {type: objekt}", "/topics/x/schema/type", 4, "'object'"},
		{"a reference to a file", "service: a\ntopics:\n  x:\n    schema: {$ref: 'file:///etc/passwd'}", "/topics/x/schema", 4, "not allowed"},
		{"a bad condition", "service: a\ntopics:\n  x:\n    rules: [{name: r, when: 'event.a =='}]", "/topics/x/rules/0/when", 1, "syntax"},
		{"a field that the schema lacks", "service: a\ntopics:\n  x:\n    schema: {properties: {mag: {}}}\n    rules: [{name: r, when: 'event.magn == 1'}]", "/topics/x/rules/0/when", 1, "did you mean mag?"},
		{"a param of unknown type", "service: a\ntopics:\n  x:\n    rules: [{name: r, when: 'event.a == sub.p', params: {p: colour}}]", "/topics/x/rules/0/params/p", 4, "number, string, boolean"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := registry.ParseDocument([]byte(c.doc), "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Plan(context.Background(), d)
			e, ok := errors.AsType[*fanfare.Error](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			if e.Pointer != c.pointer || e.Line != c.line || !strings.Contains(e.Error(), c.text) {
				t.Errorf("line %d, pointer %q: %v", e.Line, e.Pointer, e)
			}
		})
	}
}

func TestSeveralFaultsAreToldAtOnce(t *testing.T) {
	_, err := registry.ParseDocument([]byte("service: a\ntopics: {x: {lane: fast}, y: {lane: slow}}\nbad: 1"), "")
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || len(e.Details) != 2 {
		t.Errorf("%v", err)
	}
}

func TestFilesOutsideTheDocumentsFolderAreNotRead(t *testing.T) {
	dir := writeFiles(t)
	inner := filepath.Join(dir, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../schema.json", filepath.Join(dir, "schema.json"), "missing.json"} {
		_, err := registry.ParseDocument([]byte("service: a\ntopics:\n  x:\n    schema_file: "+name), inner)
		e, ok := errors.AsType[*fanfare.Error](err)
		if !ok || e.Pointer != "/topics/x/schema_file" || e.Line != 4 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPasswordIsReadWhereTheSettingsSay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from the file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RELAY_PASSWORD", "from the environment")
	r, _ := openAt(t, t.TempDir())
	cases := []struct{ setting, want string }{
		{"password_env: RELAY_PASSWORD", "from the environment"},
		{"password_file: " + file, "from the file"},
		{"password_env: NO_SUCH_VARIABLE", ""},
		{"password_file: " + file + ".gone", ""},
	}
	for _, c := range cases {
		apply(t, r, "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@b.c, username: u, "+c.setting+"}")
		channel, _ := r.ChannelNamed("a", "e")
		if got, err := channel.Password(); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v", c.setting, got, err)
		}
	}
}

func TestSubscriptionsComeInWhileTheConfigurationChanges(t *testing.T) {
	ctx := context.Background()
	r, index := openAt(t, t.TempDir())
	apply(t, r, weather)
	var wg sync.WaitGroup
	const callers, each = 4, 50
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				results := make([]registry.PutResult, 1)
				err := r.PutSubscriptions(ctx, "notify", []registry.Put{{Topic: "change", Channel: "email",
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
	if n := index.Len(match.Key{Service: "notify", Topic: "change"}); n != callers*each {
		t.Errorf("the index has %d", n)
	}
	if topic, _ := r.Topic("notify", "change"); topic.Title != "T29" || len(topic.Rules) != 2 {
		t.Errorf("%+v", topic)
	}
}

func TestATemplateErrorStopsTheApply(t *testing.T) {
	opt := options(openStore(t, t.TempDir(), sqlite.Relaxed), match.New())
	opt.CompileTemplate = func(src *registry.TemplateSource) error {
		if strings.Contains(src.Text, "{%") {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates/" + src.Name + "/text", Line: 3, Message: "unclosed"}
		}
		return nil
	}
	var dry []string
	opt.DryRunTemplate = func(src *registry.TemplateSource, schema json.RawMessage, params map[string]string) error {
		dry = append(dry, fmt.Sprint(src.Name, " ", len(schema) > 0, " ", len(params)))
		return nil
	}
	r, err := registry.Open(context.Background(), opt)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	apply(t, r, "service: s\ntemplates: {a: {subject: S, text: T}, b: {subject: S, text: T}, c: {subject: S, text: T}}\n"+
		"topics: {x: {schema: {type: object}, template: a, rules: [{name: r, when: event.m == sub.p, params: {p: number}, template: b}]}}")
	if want := []string{"a true 0", "b true 1", "c false 0"}; !reflect.DeepEqual(dry, want) {
		t.Errorf("dry runs %q, want %q", dry, want)
	}
	d, err := registry.ParseDocument([]byte("service: s\ntemplates: {a: {subject: S, text: '{%'}}\ntopics: {z: {}}"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Apply(context.Background(), d)
	if e, ok := errors.AsType[*fanfare.Error](err); !ok || e.Pointer != "/templates/a/text" || e.Line != 3 {
		t.Error(err)
	}
	if _, ok := r.Topic("s", "z"); ok {
		t.Error("half of the document was applied")
	}
}

func TestEventDataIsCheckedWithAPointer(t *testing.T) {
	r, _ := openAt(t, t.TempDir())
	d, err := registry.ParseDocument([]byte(quakes), writeFiles(t))
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

func TestUnitsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, s := range []string{"30/s", "14/s", "1000/min", "5000/h", "unlimited"} {
		if r, err := registry.ParseRate(s); err != nil || r.String() != s {
			t.Errorf("%s became %s, %v", s, r, err)
		}
	}
	for _, s := range []string{"", "30", "0/s", "-1/s", "30/d", "x/s"} {
		if _, err := registry.ParseRate(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
	for _, s := range []string{"30s", "2m", "10m", "1h", "1h30m", "1m30s"} {
		var d registry.Duration
		if err := json.Unmarshal([]byte(`"`+s+`"`), &d); err != nil || d.String() != s {
			t.Errorf("%s became %s, %v", s, d, err)
		}
	}
}

// FuzzParseDocument checks that no document makes the parser panic, and that
// every refusal is one for users.
func FuzzParseDocument(f *testing.F) {
	f.Add([]byte(weather))
	f.Add([]byte("service: &a x\ntopics: *a\n<<: {a: b}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := registry.ParseDocument(b, "")
		if err == nil && d == nil {
			t.Fatal("neither document nor error")
		}
		if err != nil && fanfare.CodeOf(err) == fanfare.Internal {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
