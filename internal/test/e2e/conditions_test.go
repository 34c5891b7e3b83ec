package e2e

import (
	"fmt"
	"strings"
	"testing"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A dry run finds exactly those who are told when the event is published, and
// leaves nothing behind.
func TestADryRunTellsForWhomAnEventWouldBe(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	for i := range 20 {
		s.http.subscribe(fmt.Sprintf(`{"id":"near-%d","topic":"story","channel":"email","to":"ada%d@example.org","rule":"near","params":{"place":"vienna"}}`, i, i))
	}
	s.http.subscribe(`{"id":"own","topic":"story","channel":"email","to":"ada0@example.org","filter":"event.level > 3"}`)
	s.http.subscribe(`{"id":"no","topic":"story","channel":"email","to":"bob@example.org","filter":"event.level > 5"}`)
	const event = `{"title":"x","level":4,"place":"Vienna"}`

	run := into[client.DryRun](t, s.mustRun(event, "match", "story", "-", "--json", "--sample", "3"))
	if run.Matched != 21 || run.Messages != 20 || len(run.Channels) != 1 || run.Channels[0].Channel != "email" || run.Channels[0].Messages != 20 ||
		len(run.Rules) != 2 || run.Rules[0].Rule != "near" || run.Rules[0].Matched != 20 || run.Rules[1].Rule != "" || run.Rules[1].Matched != 1 {
		t.Errorf("found %+v", run)
	}
	if len(run.Sample) != 3 {
		t.Fatalf("named %+v", run.Sample)
	}
	all := into[client.DryRun](t, s.http.must(200, "POST", "/v1/topics/story/match?sample=100", plain, event))
	if len(all.Sample) != 21 {
		t.Errorf("named %d of 21", len(all.Sample))
	}
	// A key that may only publish gets the same counts but no recipients.
	publisher := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "publish")))
	if counted := into[client.DryRun](t, publisher.must(200, "POST", "/v1/topics/story/match?sample=100", plain, event)); counted.Matched != 21 || counted.Messages != 20 || len(counted.Sample) != 0 {
		t.Errorf("with the scope publish: %+v", counted)
	}
	looker := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "subscribe")))
	if found := into[client.DryRun](t, looker.must(200, "POST", "/v1/topics/story/match?sample=100", plain, event)); len(found.Sample) != 21 {
		t.Errorf("with the scope subscribe: %+v", found)
	}
	for _, one := range all.Sample {
		if one.Subscription == "own" && (one.Rule != "" || one.To != "ada0@example.org") || strings.HasPrefix(one.Subscription, "near") && one.Rule != "near" || one.Subscription == "no" || one.Subscriber == "" || one.Channel != "email" {
			t.Errorf("named %+v", one)
		}
	}
	if text := s.mustRun(event, "match", "story", "-"); !strings.Contains(text, "21 subscriptions match, 20 messages") || !strings.Contains(text, "(own filter)") {
		t.Errorf("printed %s", text)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nhold_above: 5\nhold_exempt_urgent: true\n")
	for lane, waits := range map[string]bool{"bulk": true, "urgent": false} {
		if text := s.mustRun(event, "publish", "story", "-", "--dry-run", "--lane", lane); strings.Contains(text, "waits for approval") != waits {
			t.Errorf("in the lane %s: %s", lane, text)
		}
	}
	// A CloudEvent says its audience and its times itself.
	const structured = `{"specversion":"1.0","id":"1","source":"/s","type":"story","data":` + event
	for more, want := range map[string]string{`}`: "21 subscriptions match", `,"audiencefilter":"subscriber.locale == 'xx'"}`: "21 more match, but are not in the audience", `,"expires":"2001-01-01T00:00:00Z"}`: "is in the past"} {
		if out := s.run(structured+more, "publish", "story", "-", "--dry-run"); !strings.Contains(out.out+out.err, want) {
			t.Errorf("a CloudEvent with %s: %+v", more, out)
		}
	}
	if text := s.mustRun(event, "publish", "story", "-", "--dry-run", "--audience", "subscriber.locale == 'xx'"); !strings.Contains(text, "21 more match, but are not in the audience") {
		t.Errorf("outside of the audience: %s", text)
	}
	if out := s.run(event, "publish", "story", "-", "--dry-run", "--expires", "2001-01-01T00:00:00Z"); out.code == 0 || !strings.Contains(out.err, "is in the past") {
		t.Errorf("after its time: %+v", out)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nhold_above: 1000\n")
	if got := s.http.must(200, "GET", "/v1/events", "", ""); !strings.Contains(got, `"events":[]`) {
		t.Errorf("it was kept: %s", got)
	}
	if n := r.total(); n != 0 {
		t.Errorf("%d mails left", n)
	}
	if b := s.http.completed(s.http.publish(event)); b.Matched != int64(run.Matched) || b.Messages != int64(run.Messages) {
		t.Errorf("published, it had %d and %d", b.Matched, b.Messages)
	}

	if wrong := s.http.refused(422, "POST", "/v1/topics/story/match", plain, `{"title":7}`); wrong.Pointer == "" {
		t.Errorf("data that do not fit: %+v", wrong)
	}
	s.http.refused(404, "POST", "/v1/topics/none/match", plain, event)
	s.http.refused(422, "POST", "/v1/topics/story/match?sample=-1", plain, event)
}

func TestTheMostExpensiveConditionsAreReported(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	put := into[client.Subscribed](t, s.http.must(201, "PUT", "/v1/subscriptions/cheap", plain, `{"topic":"story","channel":"email","to":"a@example.org","filter":"event.level > 3"}`))
	if put.Matching == nil || !put.Matching.Indexed {
		t.Errorf("answered %+v", put)
	}
	if empty := s.mustRun("", "report", "conditions"); !strings.Contains(empty, "the index covers all conditions") {
		t.Errorf("printed %s", empty)
	}
	const unindexed = `"topic":"story","channel":"email","filter":"event.title != 'x'"`
	put = into[client.Subscribed](t, s.http.must(201, "PUT", "/v1/subscriptions/unindexed", plain, `{"to":"b@example.org",`+unindexed+`}`))
	if put.Matching == nil || put.Matching.Indexed || put.Matching.NsPerEvent <= 0 || !strings.Contains(put.Matching.Reason, "!=") {
		t.Errorf("answered %+v", put.Matching)
	}
	s.http.subscribe(`{"to":"c@example.org",` + unindexed + `}`)
	s.http.subscribe(`{"topic":"story","channel":"email","to":"d@example.org","filter":"event.title != 'x' && !has(event.place)"}`)
	for _, title := range []string{"x", "y", "z"} {
		s.http.completed(s.http.publish(fmt.Sprintf(`{"title":%q,"level":4}`, title)))
	}

	report := into[client.ConditionReport](t, s.mustRun("", "report", "conditions", "story", "--json"))
	if len(report.Topics) != 1 || len(report.Conditions) != 2 || report.More != 0 {
		t.Fatalf("reported %+v", report)
	}
	topic, first, second := report.Topics[0], report.Conditions[0], report.Conditions[1]
	if topic.Subscriptions != 4 || topic.Unindexed != 2 || topic.NsPerEvent != first.NsPerEvent+second.NsPerEvent || topic.BudgetNs != 1_000_000 || topic.Over || topic.Events != 3 {
		t.Errorf("the topic: %+v", topic)
	}
	if first.NsPerEvent <= second.NsPerEvent || second.Subscriptions != 2 || second.NsPerEvent != put.Matching.NsPerEvent || second.Tried != 3 || second.Met != 2 {
		t.Errorf("the most expensive: %+v", report.Conditions)
	}
	if one := into[client.ConditionReport](t, s.http.must(200, "GET", "/v1/reports/conditions?limit=1", "", "")); len(one.Conditions) != 1 || one.More != 1 {
		t.Errorf("one of them: %+v", one)
	}

	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\nmatching_budget: 1ns\n")
	over := s.http.refused(422, "POST", "/v1/subscriptions", plain, `{"topic":"story","channel":"email","to":"e@example.org","filter":"event.title != 'y'"}`)
	if over.Pointer != "/filter" || !strings.Contains(over.Detail, "1ns") {
		t.Errorf("over the budget: %+v", over)
	}
	if text := s.mustRun("", "report", "conditions"); !strings.Contains(text, "(over)") || !strings.Contains(text, "2 of 3") || !strings.Contains(text, "event.title != 'x'") {
		t.Errorf("printed %s", text)
	}
	s.http.refused(404, "GET", "/v1/reports/conditions?topic=none", "", "")
}

// A condition is tried without a subscription, and with the same result as that of a match.
func TestAConditionIsTriedOnAnEvent(t *testing.T) {
	t.Parallel()
	s, _ := newsroom(t, sink.Config{}, "")
	type result struct {
		Matches   bool
		Condition struct {
			Result string
			Parts  []struct{ Text, Result string }
		}
		FoundBy string `json:"found_by"`
	}
	try := func(c *caller, body string) result {
		t.Helper()
		return into[result](t, c.must(200, "POST", "/v1/topics/story/test-condition", plain, body))
	}
	const data = `"data":{"title":"x","level":4,"place":"Vienna"}`
	if r := try(s.http, `{"condition":"event.level > 3 && event.place == 'Vienna'",`+data+`}`); !r.Matches || len(r.Condition.Parts) != 2 || r.FoundBy == "" {
		t.Errorf("met: %+v", r)
	}
	if r := try(s.http, `{"condition":"event.level > 3 && event.place == 'Graz'",`+data+`}`); r.Matches || r.Condition.Parts[0].Result != "true" || r.Condition.Parts[1].Result != "false" {
		t.Errorf("not met: %+v", r)
	}
	if r := try(s.http, `{"rule":"near","params":{"place":"vienna"},`+data+`}`); !r.Matches {
		t.Errorf("the rule: %+v", r)
	}
	event := s.http.publish(`{"title":"y","level":9}`)
	eventually(t, "the event is matched", func() bool {
		status, _, _ := s.http.send("GET", "/v1/events/"+event, "", "")
		return status == 200
	})
	if r := try(s.http, `{"condition":"event.level == 9","event":"`+event+`"}`); !r.Matches {
		t.Errorf("on an event: %+v", r)
	}
	for body, want := range map[string]string{
		`{"condition":"event.level > 'x'",` + data + `}`:                    "/condition 1 13",
		`{"condition":"event.level > 3 &&\n event.levle > 3",` + data + `}`: "/condition 2 8",
		`{"condition":"event.level >",` + data + `}`:                        "/condition 1",
		`{"rule":"near","params":{"city":"x"},` + data + `}`:                "/params",
		`{"rule":"none",` + data + `}`:                                      "/rule",
		`{"condition":"true"}`:                                              "/data",
		`{"condition":"true","event":"` + event + `",` + data + `}`:         "/data",
		`{` + data + `}`: "/condition",
		`{"condition":"true","data":{"title":5}}`:         "/data/title",
		`{"condition":"true","rule":"near",` + data + `}`: "/condition",
	} {
		p := s.http.refused(422, "POST", "/v1/topics/story/test-condition", plain, body)
		if got := fmt.Sprint(p.Pointer, " ", p.Line, " ", p.Column); !strings.HasPrefix(got, want) {
			t.Errorf("%s: refused at %s, want %s: %s", body, got, want, p.Detail)
		}
	}
	publisher := s.http.with(strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "publish")))
	if r := try(publisher, `{"condition":"event.level > 3",`+data+`}`); !r.Matches {
		t.Errorf("with the scope publish: %+v", r)
	}
	publisher.must(403, "POST", "/v1/topics/story/test-condition", plain, `{"condition":"true","event":"`+event+`"}`)
}
