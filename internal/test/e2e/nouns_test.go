package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// Every kind of thing is listed, shown, put and deleted with the same words.
func TestNounsDoTheSameToAllThings(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.mustRun(`{"title":"Other"}`, "service", "put", "other", "-")
	for _, step := range []struct {
		noun, of, name, body, again string
		shows                       string // in the list
	}{
		{"service", "", "third", `{"title":"A third one"}`, `{"title":"Third"}`, "Third"},
		{"template", "", "extra", `{"subject":"s","text":"one"}`, `{"subject":"s {{ event.title }}","text":"two"}`, "s {{ event.title }}"},
		{"channel", "", "second", `{"driver":"smtp","relay":"` + r.addr + `","from":"a@example.org"}`, `{"driver":"smtp","relay":"` + r.addr + `","from":"b@example.org"}`, "b@example.org"},
		{"topic", "", "notice", `{"title":"Notices"}`, "title: Notes\nlane: bulk\n", "bulk"},
		{"rule", "story", "all", `{"when":"true"}`, `{"when":"event.level > 1"}`, "event.level > 1"},
		{"subscriber", "", "ada", `{"addresses":[{"kind":"mail","address":"ada@example.org"}]}`, `{"addresses":[{"kind":"mail","address":"ada@example.org"}],"locale":"de"}`, "ada@example.org"},
		{"subscription", "", "ada-all", `{"topic":"story","channel":"email","to":"ada@example.org"}`, `{"topic":"story","channel":"email","to":"ada@example.org","filter":"event.level > 2"}`, "event.level > 2"},
	} {
		noun := func(verb string, more ...string) []string {
			args := []string{step.noun, verb, "--service", "news"}
			if step.of != "" {
				args = append(args, step.of)
			}
			return append(args, more...)
		}
		if out := s.mustRun(step.body, noun("put", step.name, "-")...); !strings.Contains(out, "created") && step.noun != "subscription" {
			t.Errorf("%s: put for the first time: %s", step.noun, out)
		}
		s.mustRun(step.again, noun("put", step.name, "-")...)
		if out := s.mustRun("", noun("get", step.name)...); !json.Valid([]byte(out)) {
			t.Errorf("%s: got %s", step.noun, out)
		}
		if out := s.mustRun("", noun("list")...); !strings.Contains(out, step.name) || !strings.Contains(out, step.shows) {
			t.Errorf("%s: listed as\n%s", step.noun, out)
		}
		if out := s.mustRun("", noun("list", "--json")...); !json.Valid([]byte(out)) || !strings.Contains(out, `"`+step.name+`"`) {
			t.Errorf("%s: listed as %s", step.noun, out)
		}
		if ran := s.run(`{"nonsense":1}`, noun("put", step.name, "-")...); ran.code != 1 || !strings.Contains(ran.err, "nonsense") {
			t.Errorf("%s: nonsense ended with %d: %s", step.noun, ran.code, ran.err)
		}
		s.mustRun("", noun("delete", step.name)...)
		s.mustRun("", noun("delete", step.name)...)
		if out := s.mustRun("", noun("list")...); step.noun != "subscription" && strings.Contains(out, step.shows) {
			t.Errorf("%s: still there\n%s", step.noun, out)
		}
	}
	if out := s.mustRun("", "subscription", "list", "--service", "news", "--state", "ended"); !strings.Contains(out, "ada-all") {
		t.Errorf("ended subscriptions: %s", out)
	}
	if out := s.mustRun("", "__complete", "publish", "--service", "news", "st"); !strings.Contains(out, "story\n") {
		t.Errorf("the shell completes %s", out)
	}
}

// Commands export, merge and erase a person.
func TestAPersonIsExportedMergedAndErasedByCommand(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	for _, who := range []string{"ada", "ada-2"} {
		s.mustRun(`{"addresses":[{"kind":"mail","address":"`+who+`@example.org"}]}`, "subscriber", "put", who, "-")
		s.http.subscribe(`{"topic":"story","channel":"email","subscriber":"` + who + `"}`)
	}
	s.http.completed(s.http.publish(`{"title":"x"}`))
	if out := s.mustRun("", "subscriber", "export", "ada"); !strings.Contains(out, "ada@example.org") {
		t.Errorf("exported %s", out)
	}
	if out := s.mustRun("", "subscriber", "merge", "ada-2", "--into", "ada"); !strings.Contains(out, "merged into ada") {
		t.Errorf("merged: %s", out)
	}
	if out := s.mustRun("", "subscriber", "get", "ada"); !strings.Contains(out, "ada-2@example.org") {
		t.Errorf("after the merge: %s", out)
	}
	if ran := s.run("", "subscriber", "erase", "ada"); ran.code != 1 || !strings.Contains(ran.err, "--yes") {
		t.Errorf("without --yes it ended with %d: %s", ran.code, ran.err)
	}
	s.mustRun("", "subscriber", "erase", "ada", "--yes")
	if ran := s.run("", "subscriber", "get", "ada"); ran.code != 1 {
		t.Errorf("erased, it is still there: %s", ran.out)
	}
}

// Events, messages and deliveries are listed and shown by the same verbs, and an address is
// suppressed and removed from the list.
func TestNounsShowWhatHappened(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	s.subscribe("reader@example.org")
	event := s.http.publish(`{"title":"news"}`)
	s.http.completed(event)
	if out := s.mustRun("", "event", "list", "--topic", "story"); !strings.Contains(out, event) || !strings.Contains(out, "completed") {
		t.Errorf("events: %s", out)
	}
	if out := s.mustRun("", "event", "get", event); !strings.Contains(out, `"news"`) {
		t.Errorf("the event: %s", out)
	}
	sent := into[struct {
		ID       string `json:"id"`
		Delivery struct {
			ID string `json:"id"`
		} `json:"delivery"`
	}](t, s.mustRun("", "send", "--to", "ada@example.org", "--channel", "email", "--subject", "s", "--text", "t", "--reference", "order-17", "--wait", "--json"))
	if out := s.mustRun("", "message", "list", "--reference", "order-17"); !strings.Contains(out, sent.ID) || !strings.Contains(out, "accepted") {
		t.Errorf("messages: %s", out)
	}
	if out := s.mustRun("", "message", "get", sent.ID); !strings.Contains(out, "order-17") {
		t.Errorf("the message: %s", out)
	}
	if out := s.mustRun("", "delivery", "get", sent.Delivery.ID); !strings.Contains(out, "ada@example.org") {
		t.Errorf("the delivery: %s", out)
	}
	if ran := s.run("", "message", "list"); ran.code != 1 || !strings.Contains(ran.err, "reference") {
		t.Errorf("messages without a reference: %d %s", ran.code, ran.err)
	}

	who := into[struct{ Subscribers []struct{ ID string } }](t, s.http.must(200, "GET", "/v1/subscribers?address=ada@example.org", "", ""))
	s.mustRun("", "subscriber", "erase", who.Subscribers[0].ID, "--suppress", "--yes")
	if out := s.mustRun("", "suppression", "get", "ada@example.org"); !strings.Contains(out, "erased") {
		t.Errorf("the suppression: %s", out)
	}
	s.mustRun("", "suppression", "delete", "ada@example.org")
	if ran := s.run("", "suppression", "get", "ada@example.org"); ran.code != 1 || !strings.Contains(ran.err, "not suppressed") {
		t.Errorf("afterwards: %d %s", ran.code, ran.err)
	}
}
