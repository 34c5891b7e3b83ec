package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

type auditPage struct {
	Audit []struct {
		At                                                   time.Time
		Key, KeyName, RequestID, Service, Action, Kind, Name string
		Fields                                               []struct{ Field, Old, New string }
		Changed                                              []string
		Counts                                               map[string]int
	}
	Next string
}

// Every change through the API is told by the audit, also after a restart: who,
// when and what, without addresses and secrets; a service sees its own.
func TestTheAuditTellsWhoChangedWhat(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, strings.Replace(news(r.addr, ""), "service: news", "service: games", 1))
	key := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--name", "editor"))
	editor := s.http.with(key)

	one := `{"topic":"story","channel":"email","to":"reader@example.org"}`
	editor.must(201, "PUT", "/v1/subscriptions/mine", plain, one, "X-Request-Id", "request-17")
	editor.must(200, "PUT", "/v1/subscriptions/mine", plain, one) // changes nothing
	editor.must(200, "POST", "/v1/subscriptions", lines, one+"\n{}\n"+strings.Replace(one, "reader", "second", 1)+"\n")
	editor.must(204, "POST", "/v1/pause", plain, `{"scope":{"kind":"channel","name":"email"},"reason":"reader@example.org"}`)
	event := editor.publish(`{"title":"x"}`)
	eventually(t, "the event is matched", func() bool {
		code, text, _ := editor.send("GET", "/v1/events/"+event, "", "")
		return code == 200 && !into[fanfare.Broadcast](t, text).Stages.Frozen.IsZero()
	})
	editor.must(204, "POST", "/v1/cancel", plain, `{"scope":{"kind":"broadcast","name":"`+event+`"}}`)
	editor.must(204, "POST", "/v1/resume", plain, `{"scope":{"kind":"channel","name":"email"}}`)
	editor.must(204, "DELETE", "/v1/subscriptions/mine?reason=reader@example.org", "", "")
	editor.must(200, "POST", "/v1/apply", yaml, "service: news\ntopics: {story: {title: Stories}}\n")
	s.mustStop()
	s.start()
	editor.url = s.url

	text := editor.must(200, "GET", "/v1/audit", "", "")
	var got []string
	for _, e := range into[auditPage](t, text).Audit {
		if e.Service != "news" || e.At.IsZero() || e.Key == "" {
			t.Errorf("entry %+v", e)
		}
		if e.Key == "key-2" {
			got = append(got, strings.TrimSpace(e.Action+" "+e.Kind+" "+e.Name))
		}
	}
	want := []string{"update topic story", "end subscription mine", "resume channel news/email", "cancel broadcast " + event,
		"pause channel news/email", "import subscriptions", "create subscription mine"}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	for _, hidden := range []string{"@example.org", key, s.key, "games"} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in %s", hidden, text)
		}
	}

	pick := func(query string) []string {
		var names []string
		for cursor := ""; ; {
			page := into[auditPage](t, s.http.with(s.key).must(200, "GET", "/v1/audit?limit=2&"+query+"&cursor="+cursor, "", ""))
			for _, e := range page.Audit {
				names = append(names, e.Service+" "+e.Action+" "+e.Kind)
			}
			if cursor = page.Next; cursor == "" {
				return names
			}
		}
	}
	for query, want := range map[string]string{
		"key=key-2&kind=subscription": "news end subscription,news create subscription",
		"kind=service":                "games create service,news create service",
		"action=cancel&service=news":  "news cancel broadcast",
		"name=mine&action=end":        "news end subscription",
		"kind=key":                    "news create key",
		"until=2020-01-01T00:00:00Z":  "",
		"kind=service&since=" + url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)): "games create service,news create service",
	} {
		if got := strings.Join(pick(query), ","); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	editor.must(403, "GET", "/v1/audit?service=games", "", "")
	reader := strings.TrimSpace(s.mustRun("", "key", "create", "--service", "news", "--scope", "read"))
	s.http.with(reader).must(403, "GET", "/v1/audit", "", "")

	table := s.mustRun("", "audit", "--service", "news", "--by", "key-2")
	for _, want := range []string{"key-2 editor", "import subscriptions", "2 created", "1 failed", "schema: {"} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is not in\n%s", want, table)
		}
	}
}

// Every operation that changes something is told by the audit: the examples of
// the document are run, each with a request id that its entry must have.
func TestEveryOperationThatChangesSomethingIsInTheAudit(t *testing.T) {
	t.Parallel()
	s := serve(t)
	unnoted := map[string]string{
		"publish": "events have traces", "publish-by-type": "events have traces",
		"send-message": "messages have traces",
		"explain-data": "it changes nothing", "match-event": "it changes nothing", "test-condition": "it changes nothing", "try-message": "it changes nothing", "preview-template": "it changes nothing", "lint-template": "it changes nothing",
		"delete-service": "the example's service is not there", "unsubscribe": "the example's link is none", "take-receipt": "messages have traces",
		"sign-up": "nothing is kept before it is confirmed", "send-signup": "the same",
		"create-mailbox-token": "each visit of a page needs one, and nothing is stored",
		"retry-parked":         "nothing is parked", "drop-parked": "nothing is parked",
		"resume-destination": "nothing waits for the example's destination",
	}
	d, who := described(s), cast{}
	caller := *s.http
	caller.service = ""
	asked := map[string]string{} // request id -> operation
	for i, sample := range d.samples() {
		if sample.op.id == "get-event" || sample.op.id == "explain-event" || sample.op.id == "cancel" {
			caller.completedOrRunning(who["evt"])
		}
		request := fmt.Sprint("sample-", i)
		status, body, _ := caller.send(sample.op.method, sample.target(who), sample.MediaType, who.play(sample.body), "X-Request-Id", request)
		if status == 201 || status == 202 {
			who.learn(body)
		}
		if sample.op.method != "GET" && status < 300 {
			asked[request] = sample.op.id
		}
	}
	told := map[string]bool{}
	for cursor := ""; ; {
		page := into[struct {
			Audit []struct {
				Request string `json:"request_id"`
			}
			Next string
		}](t, caller.must(200, "GET", "/v1/audit?cursor="+cursor, "", ""))
		for _, e := range page.Audit {
			told[asked[e.Request]] = true
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	for request, operation := range asked {
		if !told[operation] && unnoted[operation] == "" {
			t.Errorf("%s (%s) is not in the audit", operation, request)
		}
	}
}
