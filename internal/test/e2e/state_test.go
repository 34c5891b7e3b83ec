package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// The state of keys can be shown, and crossings can be explained after an event and predicted
// before it.
func TestTheStateOfAKeyIsShownAndCrossingsAreExplainedByIt(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.http.must(200, "PUT", "/v1/topics/story", plain, `{"schema":{"type":"object","properties":{"title":{"type":"string"},"level":{"type":"number"},"place":{"type":"string"}}},"template":"story","key":"title"}`)
	s.http.subscribe(`{"id":"five","topic":"story","channel":"email","to":"ada@example.org","filter":"crosses_above(event.level, 5)"}`)
	first := s.http.publish(`{"title":"a b/c","level":4}`)
	if b := s.http.completed(first); b.Matched != 0 {
		t.Errorf("the first event crossed something: %+v", b)
	}
	s.http.completed(s.http.publish(`{"title":"other","level":9}`))

	const next = `{"title":"a b/c","level":6}`
	if run := into[client.DryRun](t, s.mustRun(next, "match", "story", "-", "--dry-run", "--json")); run.Matched != 1 {
		t.Errorf("a dry run knows nothing of what was before: %+v", run)
	}
	second := s.http.publish(next)
	if b := s.http.completed(second); b.Matched != 1 {
		t.Errorf("nobody was told: %+v", b)
	}
	if run := into[client.DryRun](t, s.mustRun(next, "match", "story", "-", "--dry-run", "--json")); run.Matched != 0 {
		t.Errorf("it would cross the level once more: %+v", run)
	}

	page := into[client.StatePage](t, s.mustRun("", "state", "story", "--json"))
	if page.Keys != 2 || len(page.States) != 2 || page.States[0].Key != "a b/c" || page.States[0].Event != second || !strings.Contains(string(page.States[0].Data), "6") || page.States[0].At.IsZero() {
		t.Errorf("the states are %+v", page)
	}
	one := into[client.StatePage](t, s.http.must(200, "GET", "/v1/topics/story/state?limit=1", "", ""))
	rest := into[client.StatePage](t, s.http.must(200, "GET", "/v1/topics/story/state?limit=1&cursor="+one.Next, "", ""))
	if len(one.States) != 1 || len(rest.States) != 1 || rest.States[0].Key != "other" || rest.Next != "" {
		t.Errorf("in pages: %+v, then %+v", one, rest)
	}
	if state := into[client.KeyState](t, s.mustRun("", "state", "story", "a b/c")); state.Event != second {
		t.Errorf("of one key: %+v", state)
	}
	if text := s.mustRun("", "state", "story", "--limit", "1"); !strings.Contains(text, second) || !strings.Contains(text, "1 more key") {
		t.Errorf("printed %s", text)
	}
	if status := s.mustRun("", "status"); !strings.Contains(status, "states") || !strings.Contains(status, "2 keys") {
		t.Errorf("the status does not count them: %s", status)
	}
	s.http.refused(404, "GET", "/v1/topics/story/state/none", "", "")
	s.http.refused(404, "GET", "/v1/topics/none/state", "", "")

	s.http.completed(s.http.publish(`{"title":"a b/c","level":7}`)) // what is explained is what it was then
	for event, before := range map[string]string{first: "", second: "4"} {
		e := into[fanfare.Explanation](t, s.http.must(200, "GET", "/v1/subscriptions/five/explain?event="+event, "", ""))
		was := e.Condition.Parts[len(e.Condition.Parts)-1]
		if e.Wanted != (event == second) || was.Text != "event.level, before" || string(was.Value) != before {
			t.Errorf("%s is explained by %+v: %s", event, was, e.Summary)
		}
	}
	if e := into[fanfare.Explanation](t, s.http.must(200, "POST", "/v1/subscriptions/five/explain", plain, `{"title":"a b/c","level":8}`)); e.Wanted {
		t.Errorf("an event that would come now crosses nothing: %+v", e)
	}
}
