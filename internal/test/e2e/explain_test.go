package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// An explanation says what decided: the condition, what was recorded, and what
// came of it.
func TestExplainSaysWhyAnEventCameOrNot(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	for _, sub := range []string{
		`{"id":"near","topic":"story","channel":"email","to":"ada@example.org","rule":"near","params":{"place":"vienna"}}`,
		`{"id":"level","topic":"story","channel":"email","to":"ada@example.org","rule":"level","params":{"from":3}}`,
		`{"id":"own","topic":"story","channel":"email","to":"bob@example.org","filter":"event.level > 5 && (event.place == 'Graz' || has(event.title))"}`,
	} {
		s.http.subscribe(sub)
	}
	event := s.http.publish(`{"title":"x","level":4,"place":"Vienna"}`)
	s.http.completed(event)
	s.http.subscribe(`{"id":"late","topic":"story","channel":"email","to":"late@example.org"}`)

	explain := func(args ...string) fanfare.Explanation {
		t.Helper()
		e := into[fanfare.Explanation](t, s.mustRun("", append([]string{"explain", "--json"}, args...)...))
		text := s.mustRun("", append([]string{"explain"}, args...)...)
		if !strings.Contains(text, e.Summary) {
			t.Errorf("the summary %q is not in\n%s", e.Summary, text)
		}
		return e
	}
	check := func(e fanfare.Explanation, name string) fanfare.Check {
		t.Helper()
		for _, c := range e.Checks {
			if c.Name == name {
				return c
			}
		}
		t.Fatalf("no check %s in %+v", name, e)
		return fanfare.Check{}
	}

	if e := explain("near", event); !e.Wanted || e.Delivery == nil || e.Delivery.State != "accepted" || e.Condition.Result != "true" || e.FoundBy != "the text in event.place" ||
		!check(e, "template").Holds || !strings.Contains(check(e, "template").Detail, "near@1") {
		t.Errorf("near: %+v", e)
	}
	if e := explain("level", event); !e.Wanted || check(e, "template").Holds || !strings.Contains(check(e, "template").Detail, "near (rule near)") {
		t.Errorf("level: %+v", e)
	}
	if e := explain("own", event); e.Wanted || check(e, "condition").Holds || check(e, "recorded").Holds || e.Delivery != nil || len(e.Condition.Parts) != 2 ||
		e.Condition.Parts[0].Result != "false" || string(e.Condition.Parts[0].Parts[0].Value) != "4" {
		t.Errorf("own: %+v", e)
	}
	if e := explain("late", event); e.Wanted || check(e, "begun").Holds || !check(e, "condition").Holds || !strings.Contains(e.Summary, "after the event was received") {
		t.Errorf("late: %+v", e)
	}

	// The recorded result decides, even after later changes.
	s.http.subscribe(`{"id":"near","topic":"story","channel":"email","to":"ada@example.org","rule":"near","params":{"place":"graz"}}`)
	if e := explain("near", event); !e.Wanted || check(e, "condition").Holds || !strings.Contains(check(e, "recorded").Detail, "changed since") {
		t.Errorf("near, changed: %+v", e)
	}
	s.http.must(204, "DELETE", "/v1/subscriptions/level?reason=moved", "", "")
	if e := explain("level", event); !e.Wanted || !strings.Contains(check(e, "active").Detail, "ended at") {
		t.Errorf("level, ended: %+v", e)
	}
	after := s.http.publish(`{"title":"y","level":9}`)
	s.http.completed(after)
	if e := explain("level", after); e.Wanted || check(e, "active").Holds || !strings.Contains(e.Summary, "(moved)") {
		t.Errorf("level, ended before: %+v", e)
	}

	// Data that were never published.
	if e := explain("own", write(t, "event.json", `{"title":"t","level":6}`)); !e.Wanted || e.Event != "" || e.Condition.Parts[1].Parts[0].Error != "event.place is missing" {
		t.Errorf("own, data: %+v", e)
	}
	if e := explain("own", write(t, "event.json", `{"level":6,"place":"Graz"}`)); e.Wanted || check(e, "schema").Holds || !check(e, "condition").Holds {
		t.Errorf("own, data that intake refuses: %+v", e)
	}
	if e := explain("level", write(t, "event.json", `{"title":"t","level":6}`)); e.Wanted || check(e, "active").Holds {
		t.Errorf("level, ended, data: %+v", e)
	}
	if e := explain("own", write(t, "event.json", `{}`), "--topic", "other"); e.Wanted || check(e, "topic").Holds || e.Condition != nil {
		t.Errorf("own, data of another topic: %+v", e)
	}
	tree := s.run(`{"title":"t","level":"high","place":"Graz"}`, "explain", "own", "-").out
	for _, want := range []string{"all of these:", "├─ ! event.level > 5", "a string cannot be compared with a number", `event.level = "high"`, "└─ ✓ one of these:", `   ├─ ✓ event.place == "Graz"`} {
		if !strings.Contains(tree, want) {
			t.Errorf("%q is not in\n%s", want, tree)
		}
	}
	for _, bad := range [][]string{{"explain", "nobody", event}, {"explain", "own", "evt-20200101-1001"}, {"explain", "own", write(t, "event.json", "{\n")}, {"explain", "own", "nowhere.json"}} {
		if ran := s.run("", bad...); ran.code != 1 || ran.err == "" {
			t.Errorf("%v ended with %d: %s%s", bad, ran.code, ran.out, ran.err)
		}
	}
	s.http.refused(422, "GET", "/v1/subscriptions/own/explain", "", "")
	if wrong := s.http.refused(422, "POST", "/v1/subscriptions/own/explain", plain, "{\n,"); wrong.Line != 2 {
		t.Errorf("data that are no JSON: %+v", wrong)
	}
}
