package e2e

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

type taskSeen struct {
	ID, Service, Action, State string
	Found, Done, Failed        int
	LastError                  string `json:"last_error"`
	KeyName                    string `json:"key_name"`
	Filter                     map[string]any
}

// ended waits until a task has ended.
func (c *caller) ended(id string) (task taskSeen) {
	c.t.Helper()
	eventually(c.t, "task "+id+" ends", func() bool {
		status, text, _ := c.send("GET", "/v1/tasks/"+id, "", "")
		if status == 200 {
			task = into[taskSeen](c.t, text)
		}
		return status == 200 && task.State != "running"
	})
	return task
}

func TestATaskRetriesEverythingThatIsParked(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	event, parked := damaged(s, crowd(10))
	s.mustStop() // it would still have the manifest in memory
	s.spoil()    // mends it
	s.start()
	if shown := s.mustRun("", "parked", "retry", "--all"); !strings.Contains(shown, "retry-parked") {
		t.Errorf("the command shows %s", shown)
	}
	if b := s.http.completed(event); b.Counts[fanfare.Accepted] != 10 || r.total() != 10 {
		t.Errorf("got %v, %d mails", b.Counts, r.total())
	}
	list := into[[]taskSeen](t, s.mustRun("", "task", "list", "--json"))
	if len(list) != 1 {
		t.Fatalf("the tasks are %+v", list)
	}
	if task := s.http.ended(list[0].ID); task.State != "completed" || task.Found != len(parked) || task.Done != len(parked) || task.Failed != 0 || task.KeyName == "" {
		t.Errorf("the task is %+v", task)
	}
	for _, command := range [][]string{{"task", "list"}, {"task", "show", list[0].ID}} {
		if shown := s.mustRun("", command...); !strings.Contains(shown, list[0].ID) || !strings.Contains(shown, "completed") {
			t.Errorf("%v shows %s", command, shown)
		}
	}
	if ran := s.run("", "task", "cancel", list[0].ID); ran.code == 0 || !strings.Contains(ran.err, "has ended") {
		t.Errorf("cancelling it ended with %d: %s", ran.code, ran.err)
	}
	everywhere := *s.http
	everywhere.service = "" // the task is about all services
	text := everywhere.must(200, "GET", "/v1/audit?name="+list[0].ID, "", "")
	entries := into[auditPage](t, text).Audit
	if len(entries) != 2 || entries[0].Action != "end" || entries[0].Counts["done"] != len(parked) || entries[1].Action != "create" {
		t.Errorf("the audit has %s", text)
	}
	if text := s.http.must(200, "GET", "/v1/audit?kind=parked&action=retry", "", ""); !strings.Contains(text, parked[0].ID) {
		t.Errorf("the audit of the work is %s", text)
	}
}

func TestATaskEndsSubscriptionsAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe(crowd(2500)...)
	s.http.must(201, "PUT", "/v1/subscriptions/paused", plain, `{"topic":"story","channel":"email","to":"paused@example.org"}`)
	s.http.must(204, "POST", "/v1/subscriptions/paused/pause", "", "")
	started := into[taskSeen](t, s.http.must(201, "POST", "/v1/tasks", plain, `{"action":"end-subscriptions","filter":{"topic":"story","state":"active"},"reason":"the topic ends"}`))
	s.mustStop()
	s.start()
	s.http.url = s.url
	task := s.http.ended(started.ID)
	if task.State != "completed" || task.Found != 2500 || task.Done != 2500 || task.Failed != 0 {
		t.Errorf("the task is %+v", task)
	}
	count := func(state string) int {
		return strings.Count(s.http.must(200, "GET", "/v1/subscriptions?limit=1000&state="+state, "", ""), `"id"`)
	}
	if active, paused := count("active"), count("paused"); active != 0 || paused != 1 {
		t.Errorf("%d are active, %d paused", active, paused)
	}
	if text := s.http.must(200, "GET", "/v1/subscriptions?limit=1&state=ended", "", ""); !strings.Contains(text, "the topic ends") {
		t.Errorf("ended is %s", text)
	}
}

func TestATaskOfAServiceTouchesNoOther(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	for _, c := range []*caller{s.http, &other} {
		c.must(200, "POST", "/v1/suppression-list?quiet=true", lines, `{"address":"a@example.org"}`+"\n"+`{"address":"b@example.org","reason":"complaint"}`+"\n")
	}
	key := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--name", "editor", "--scope", "subscribe"))
	editor := s.http.with(key)
	editor.must(403, "POST", "/v1/tasks", plain, `{"action":"retry-parked"}`)
	editor.must(403, "POST", "/v1/tasks", plain, `{"action":"remove-suppressions","filter":{"all_services":true}}`)
	started := into[taskSeen](t, editor.must(201, "POST", "/v1/tasks", plain, `{"action":"remove-suppressions","filter":{"reason":"imported"}}`))
	if task := editor.ended(started.ID); task.State != "completed" || task.Done != 1 || task.Service != "news" {
		t.Errorf("the task is %+v", task)
	}
	left := func(c *caller) int {
		return strings.Count(c.must(200, "GET", "/v1/suppression-list", "", ""), `"address"`)
	}
	if mine, theirs := left(s.http), left(&other); mine != 1 || theirs != 2 {
		t.Errorf("%d are left, and %d of the other service", mine, theirs)
	}
	foreign := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "games", "--name", "theirs")))
	foreign.must(404, "GET", "/v1/tasks/"+started.ID, "", "")
	foreign.must(404, "POST", "/v1/tasks/"+started.ID+"/cancel", "", "")
}
