package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestObjectsThatSubscriptionsUseCannotBeDeleted(t *testing.T) {
	ctx := context.Background()
	r, index := openAt(t, storetest.Place(t))
	apply(t, r, weather)
	good(t, putAll(t, r,
		people.SubscriptionPut{ID: "x", Topic: "change", Channel: "print", To: "a@example.org", Filter: "mag > 4.0"},
		people.SubscriptionPut{ID: "y", Topic: "change", Channel: "email", To: "a@example.org", Rule: "strong"},
	))
	cases := []struct{ doc, text string }{
		{"service: notify\ntopics: {change: {delete: true}}", "/topics/change"},
		{"service: notify\nchannels: {print: {delete: true}}", "/channels/print"},
		{"service: notify\ntopics: {change: {schema: {properties: {title: {type: string}}}, rules: [{name: near, delete: true}, {name: strong, when: title == 'x'}]}}", "mag > 4.0"},
		{"service: notify\ntopics: {other: {title: T}, change: {rules: [{name: strong, delete: true}]}}", "strong"},
	}
	for _, c := range cases {
		d, err := document.ParseDocument([]byte(c.doc), "")
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
	hits, err := index.Match(condition.Key{Service: "notify", Topic: "change"}, condition.Event{Data: json.RawMessage(`{"mag":6.5}`)}, nil)
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

// If the name of a driver is mistyped, its fields are not reported as unknown.
func TestAnUnknownDriverIsTheOnlyFault(t *testing.T) {
	for _, fields := range []string{"driver: smpt, relay: 'h:25', tls: off", "driver: flie, path: /x"} {
		_, err := document.ParseDocument([]byte("service: a\nchannels:\n  e: {from: a@b.c, "+fields+"}"), "")
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
		{"a bad name", "service: a\ntopics: {X Y: {}}", "/topics/X Y", 2, "lower-case"},
		{"a literal password", "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: a@b.c, username: u, password: secret}", "/channels/e/password", 3, "password_env"},
		{"field of another driver", "service: a\nchannels:\n  e: {driver: file, path: /x, from: a@b.c, relay: 'h:25'}", "/channels/e/relay", 3, "unknown field"},
		{"unknown driver", "service: a\nchannels:\n  e: {driver: pigeon}", "/channels/e/driver", 3, "smtp, file"},
		{"no relay", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c}", "/channels/e", 3, "exactly one of relay and relays"},
		{"bad relay", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: host}", "/channels/e/relay", 3, "host:port"},
		{"bad share", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', reserve: {urgent: 0.1}}", "/channels/e/reserve/urgent", 3, "write it as 10%"},
		{"more than all", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', reserve: {urgent: 101%}}", "/channels/e/reserve/urgent", 3, "write it as 10%"},
		{"nothing left for bulk", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', reserve: {urgent: 80%, normal: 20%}}", "/channels/e/reserve", 3, "at least 10%"},
		{"bad rate", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', rate: fast}", "/channels/e/rate", 3, "unlimited"},
		{"bad duration", "service: a\nchannels:\n  e: {driver: smtp, from: a@b.c, relay: 'h:25', retry: [30s, soon]}", "/channels/e/retry/1", 3, "30s"},
		{"line break in from", "service: a\nchannels:\n  e: {driver: smtp, relay: 'h:25', from: \"a@b.c\\r\\nBcc: x@y.z\"}", "/channels/e/from", 3, "one line"},
		{"bad lane", "service: a\ntopics:\n  x: {lane: fast}", "/topics/x/lane", 3, "urgent, normal or bulk"},
		{"two sources", "service: a\ntopics:\n  t: {schema: {}, schema_file: ''}", "/topics/t", 3, "both schema and schema_file"},
		{"files where there are none", "service: a\ntemplates:\n  t: {subject: s, text_file: b}", "/templates/t/text_file", 3, "the server cannot read the files of a document"},
		{"a rule without when", "service: a\ntopics:\n  x:\n    rules:\n      - name: r", "/topics/x/rules/0", 5, "no condition"},
		{"delete and more", "service: a\ntopics:\n  x: {delete: true, title: T}", "/topics/x", 3, "cannot be combined"},
		{"two documents", "service: a\n---\nservice: b", "", 0, "2 documents"},
		{"too deep", "service: a\ntopics: {x: {schema: " + strings.Repeat("[", 1<<20), "", 2, "levels"},
		{"too deep in dashes", "service: a\n" + strings.Repeat("- ", 1<<19), "", 2, "levels"},
		{"a list for an object", "service: a\ntopics: [x]", "/topics", 2, "must be an object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := document.ParseDocument([]byte(c.doc), "")
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
	r, _ := openAt(t, storetest.Place(t))
	cases := []struct {
		name, doc, pointer string
		line               int
		text               string
	}{
		{"unknown template", "service: a\ntopics:\n  x: {template: nope}", "/topics/x/template", 3, "nope"},
		{"unknown template of digests", "service: a\ntopics:\n  x: {digest: {template: nope}}", "/topics/x/digest/template", 3, "nope"},
		{"unknown template of a rule", "service: a\ntopics:\n  x:\n    rules:\n      - {name: r, when: event.a == 1, template: nope}", "/topics/x/rules/0/template", 5, "nope"},
		{"a bad schema", "service: a\ntopics:\n  x:\n    schema: {type: objekt}", "/topics/x/schema/type", 4, "'object'"},
		{"a reference to a file", "service: a\ntopics:\n  x:\n    schema: {$ref: 'file:///etc/passwd'}", "/topics/x/schema", 4, "not allowed"},
		{"a bad condition", "service: a\ntopics:\n  x:\n    rules: [{name: r, when: 'event.a =='}]", "/topics/x/rules/0/when", 1, "syntax"},
		{"a field that the schema lacks", "service: a\ntopics:\n  x:\n    schema: {properties: {mag: {}}}\n    rules: [{name: r, when: 'event.magn == 1'}]", "/topics/x/rules/0/when", 1, "did you mean mag?"},
		{"a param of unknown type", "service: a\ntopics:\n  x:\n    rules: [{name: r, when: 'event.a == sub.p', params: {p: colour}}]", "/topics/x/rules/0/params/p", 4, "number, string, boolean"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, err := document.ParseDocument([]byte(c.doc), "")
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
	_, err := document.ParseDocument([]byte("service: a\ntopics: {x: {lane: fast}, y: {lane: slow}}\nbad: 1"), "")
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok || len(e.Details) != 2 {
		t.Errorf("%v", err)
	}
}

func TestATemplateErrorStopsTheApply(t *testing.T) {
	opt := options(openStore(t, storetest.Place(t)), condition.New())
	opt.CompileTemplate = func(src *catalog.TemplateSource) error {
		if strings.Contains(src.Text, "{%") {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/templates/" + src.Name + "/text", Line: 3, Message: "unclosed"}
		}
		return nil
	}
	var dry []string
	opt.DryRunTemplate = func(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error {
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
	d, err := document.ParseDocument([]byte("service: s\ntemplates: {a: {subject: S, text: '{%'}}\ntopics: {z: {}}"), "")
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
