package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// receipts has a template for direct sends beside the newsroom's.
const receipts = `service: news

templates:

  receipt:

    subject: "Order {{ event.order }}"

    text: "Thank you, {{ sub.name | default: 'friend' }}. It was {{ event.total }}."

  personal:

    subject: "For {{ sub.name }}"

    text: "{{ sub.name }} of {{ subscriber.address }}"

`

// mailroom is a newsroom with the templates of receipts.
func mailroom(t *testing.T, config sink.Config, settings string, flags ...string) (*server, *relay) {
	t.Helper()
	s, r := newsroom(t, config, settings, flags...)
	s.http.must(200, "POST", "/v1/apply", yaml, receipts)
	return s, r
}

// A message is a direct send as the API shows it.
type message struct {
	ID         string
	Event      string
	Service    string
	State      string
	Reason     string
	Reference  string
	Lane       string
	Channel    string
	Template   string
	Recipients int
	Errors     []struct {
		Index int
		Error member
	}
	Counts     fanfare.Counts
	Delivery   *fanfare.Delivery
	Stages     fanfare.Stages
	Deliveries string
}

// message sends one and returns the answer.
func (c *caller) message(query, body string, headers ...string) message {
	c.t.Helper()
	return into[message](c.t, c.must(201, "POST", "/v1/messages"+query, plain, body, headers...))
}

func TestAMessageToOnePersonArrivesAndIsTraced(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	m := s.http.message("?wait=30s", `{"channel":"email","to":"Ada@Example.org","template":"receipt","data":{"order":4711,"total":"12 EUR"},"reference":"order-4711"}`)

	if m.State != "accepted" || m.Recipients != 1 || m.Reference != "order-4711" || m.Lane != "urgent" || m.Channel != "email" || m.Template != "receipt@1" ||

		m.Service != "news" || !strings.HasPrefix(m.ID, "msg-") || m.Stages.Completed.IsZero() || m.Counts[fanfare.Accepted] != 1 {
		t.Fatalf("answered %+v", m)
	}
	if d := m.Delivery; d == nil || len(d.Attempts) != 1 || d.Attempts[0].Code != 250 || d.Kind != "message" || d.Topic != "" || d.Reference != "order-4711" || len(d.Subscriptions) != 0 {
		t.Errorf("its delivery is %+v", m.Delivery)
	}
	mail := r.one("Ada@example.org")
	if _, body := headerOf(mail); field(mail, "Subject") != "Order 4711" || strings.TrimSpace(body) != "Thank you, friend. It was 12 EUR." {
		t.Errorf("the mail is %s", mail)
	}
	if field(mail, "List-Unsubscribe") != "" || field(mail, "List-Id") != "" {
		t.Errorf("it looks like one of a list: %s", mail)
	}
	if got := into[message](t, s.http.must(200, "GET", "/v1/messages/"+m.ID, "", "")); got.State != "accepted" || got.Delivery == nil || got.ID != m.ID {
		t.Errorf("read again: %+v", got)
	}
	b := s.http.broadcast(m.ID)
	if b.Kind != "message" || b.Topic != "" || b.Event != m.Event || b.Messages != 1 || b.Matched != 0 || b.State != "completed" || b.Reference != "order-4711" {
		t.Errorf("traced as %+v", b)
	}
	if list := s.http.deliveries(m.Event, ""); len(list) != 1 || list[0].Address != "Ada@example.org" || list[0].Template != "receipt@1" {
		t.Errorf("its deliveries are %+v", list)
	}
	history := into[struct{ Deliveries []fanfare.Delivery }](t, s.http.must(200, "GET", "/v1/subscribers/Ada@example.org/deliveries", "", ""))
	if len(history.Deliveries) != 1 || history.Deliveries[0].Kind != "message" || history.Deliveries[0].Event != m.Event {
		t.Errorf("her history is %+v", history)
	}
	if out := s.mustRun("", "trace", "--subscriber", "Ada@example.org"); !strings.Contains(out, m.Event) {
		t.Errorf("the trace of her is %s", out)
	}
	s.http.must(201, "PUT", "/v1/subscriptions/hers", plain, `{"topic":"story","channel":"email","to":"ada@example.org"}`)
	if out := s.run("", "explain", "hers", m.ID); !strings.Contains(out.out, "a message to listed recipients") {
		t.Errorf("explained as %s%s", out.out, out.err)
	}
	// A known subscriber can also be addressed by id.
	id := history.Deliveries[0].Subscriber
	m = s.http.message("?wait=30s", `{"channel":"email","subscriber":"`+id+`","content":{"subject":"Hi","text":"{{ subscriber.id }}"}}`)
	if m.State != "accepted" || m.Template != "" || r.total() != 2 {
		t.Errorf("answered %+v", m)
	}
}

func TestAMessageBringsItsOwnContent(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	s.http.message("?wait=30s", `{"channel":"email","to":"ada@example.org","data":{"what":"<b>ünd</b>"},
		"content":{"subject":"About {{ event.what }}","text":"plain {{ event.what }}","html":"<p>{{ event.what }}</p>"}}`)
	mail := r.one("ada@example.org")
	if !strings.Contains(mail, "multipart/alternative") || !strings.Contains(mail, "&lt;b&gt;") || !strings.Contains(mail, "plain <b>") {
		t.Errorf("the mail is %s", mail)
	}
	for name, c := range map[string]struct {
		content, pointer, detail string
		line, column             int
	}{
		"unclosed":         {`{"subject":"S","text":"a\nb\n  {{ event.x"}`, "/content/text", "{{ is not closed", 3, 3},
		"unknown variable": {`{"subject":"S","html":"<p>\n{{ evnt.x }}</p>"}`, "/content/html", "unknown variable evnt.x", 2, 4},
		"missing value":    {`{"subject":"S","text":"a\n{{ event.nothing }}"}`, "/data", "content, text: undefined variable event.nothing", 2, 4},
		"no body":          {`{"subject":"S"}`, "/content", "no text, html or markdown", 0, 0},
		"no subject":       {`{"text":"T"}`, "/content/subject", "no subject", 0, 0},
	} {
		got := s.http.refused(422, "POST", "/v1/messages", plain, `{"channel":"email","to":"ada@example.org","data":{"what":1},"content":`+c.content+`}`)
		if got.Pointer != c.pointer || !strings.Contains(got.Detail, c.detail) || got.Line != c.line || got.Column != c.column {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if r.total() != 1 {
		t.Errorf("%d mails left, want 1", r.total())
	}
}

// A template version that was named stays the one, whatever comes after it.
func TestAMessageIsPinnedToATemplateVersion(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\ntemplates:\n  receipt: {subject: Second, text: T}\n")
	for _, c := range []struct{ template, subject string }{{"receipt@1", "Order 7"}, {"receipt", "Second"}, {"receipt@2", "Second"}} {
		before := r.total()
		s.http.message("?wait=30s", `{"channel":"email","to":"a@example.org","template":"`+c.template+`","data":{"order":7,"total":1}}`)
		mails := r.of("a@example.org")
		if len(mails) != before+1 || field(mails[before], "Subject") != c.subject {
			t.Errorf("%s: %d mails, the last %s", c.template, len(mails), field(mails[len(mails)-1], "Subject"))
		}
	}
}

func TestWaitingEndsWithWhatIsTrueThen(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{Inject: sink.Inject{PermFail: 1}}, "")
	body := `{"channel":"email","to":"ada@example.org","template":"receipt","data":{"order":1,"total":1}}`
	m := s.http.message("?wait=30s", body)
	if m.State != "failed" || m.Delivery == nil || len(m.Delivery.Attempts) != 1 || m.Delivery.Attempts[0].Code < 500 || m.Delivery.Attempts[0].Text == "" {
		t.Errorf("a refusal is answered as %+v, %+v", m, m.Delivery)
	}
	r.close()
	r.open(sink.Config{})
	s.mustRun("", "pause", "--channel", "news/email")
	m = s.http.message("?wait=10ms", body)
	if m.State != "pending" || m.Stages.Completed != (fanfare.Stages{}).Completed {
		t.Errorf("of what is paused: %+v", m)
	}
	status := make(chan message, 1)
	go func() { status <- into[message](t, s.http.must(200, "GET", "/v1/messages/"+m.ID+"?wait=30s", "", "")) }()
	s.mustRun("", "resume", "--channel", "news/email")
	if got := <-status; got.State != "accepted" {
		t.Errorf("when it was resumed: %+v", got)
	}
	s.mustRun("", "pause", "--channel", "news/email")
	m = s.http.message("", body)
	s.http.message("", strings.Replace(body, "ada@", "ben@", 1))
	eventually(t, "the message can be cancelled", func() bool { return s.run("", "cancel", "--broadcast", m.ID, "--reason", "a mistake").code == 0 })
	got := into[message](t, s.http.must(200, "GET", "/v1/messages/"+m.ID+"?wait=30s", "", ""))
	if got.State != "cancelled" || got.Reason != "a mistake" {
		t.Errorf("when it was cancelled: %+v", got)
	}
	s.mustRun("", "resume", "--channel", "news/email")
	r.one("ben@example.org")
	if mails := r.of("ada@example.org"); len(mails) != 1 {
		t.Errorf("ada got %d mails, want 1", len(mails))
	}
}

// A list of which the first hundred fail is paused as a broadcast would be; a
// message to one person that fails is only that.
func TestFailedMessagesToOnePersonEachPauseNothing(t *testing.T) {
	t.Parallel()
	s, _ := mailroom(t, sink.Config{Inject: sink.Inject{PermFail: 1}}, "")
	for i := range 120 {
		s.http.message("", fmt.Sprintf(`{"channel":"email","to":"p%d@example.org","template":"receipt","data":{"order":1,"total":1}}`, i))
	}
	m := s.http.message("?wait=30s", `{"channel":"email","to":"last@example.org","template":"receipt","data":{"order":1,"total":1}}`)
	if m.State != "failed" {
		t.Errorf("the last is %+v", m)
	}
	if status := into[fanfareStatus](t, s.mustRun("", "status", "--json")); len(status.Paused) != 0 {
		t.Errorf("paused are %+v", status.Paused)
	}
}

func TestMessagesAreFoundByTheirReference(t *testing.T) {
	t.Parallel()
	s, _ := mailroom(t, sink.Config{}, "")
	var want []string
	for i := range 7 {
		m := s.http.message("?wait=30s", fmt.Sprintf(`{"channel":"email","to":"p%d@example.org","template":"receipt","data":{"order":1,"total":1},"reference":"order %d/ä"}`, i, i%2))
		if i%2 == 0 {
			want = append([]string{m.ID}, want...)
		}
	}
	check := func(when string) {
		t.Helper()
		var got []string
		cursor := ""
		for {
			text := s.http.must(200, "GET", "/v1/messages?reference=order%200/%C3%A4&limit=3"+cursor, "", "")
			page := into[struct {
				Messages []message
				Next     string
			}](t, text)
			for _, m := range page.Messages {
				got = append(got, m.ID)
				if m.State != "accepted" || m.Reference != "order 0/ä" {
					t.Errorf("%s: listed is %+v", when, m)
				}
			}
			if page.Next == "" {
				break
			}
			cursor = "&cursor=" + page.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: found %q, want %q", when, got, want)
		}
	}
	check("before they are indexed")
	s.subscribe("reader@example.org")
	s.http.completed(s.http.publish(`{"title":"t"}`))
	for kind, n := range map[string]int{"message": 7, "event": 1} {
		list := into[struct{ Broadcasts []fanfare.Broadcast }](t, s.http.must(200, "GET", "/v1/broadcasts?kind="+kind, "", "")).Broadcasts
		if len(list) != n || list[0].Kind != kind {
			t.Errorf("%d broadcasts of kind %s, want %d: %+v", len(list), kind, n, list)
		}
	}
	s.mustStop()
	s.start()
	check("after a restart")
	if got := s.http.refused(422, "GET", "/v1/messages", "", ""); !strings.Contains(got.Detail, "reference") {
		t.Errorf("without a reference: %+v", got)
	}
	s.http.refused(422, "GET", "/v1/messages?reference=x&cursor=abc", "", "")
	if text := s.http.must(200, "GET", "/v1/messages?reference=unknown", "", ""); strings.TrimSpace(text) != `{"messages":[]}` {
		t.Errorf("an unknown one: %s", text)
	}
}

func TestTheCommandLineSends(t *testing.T) {
	t.Parallel()
	s, r := mailroom(t, sink.Config{}, "")
	out := s.mustRun("", "send", "--to", "ada@example.org", "--channel", "email", "--template", "receipt", "--data", `{"order":7,"total":1}`, "--reference", "r7", "--wait")
	if !strings.Contains(out, " accepted\n") || !strings.Contains(out, "ada@example.org: 250") {
		t.Errorf("printed %s", out)
	}
	if field(r.one("ada@example.org"), "Subject") != "Order 7" {
		t.Error("another mail came")
	}
	if out := s.mustRun("", "trace", "--subscriber", "ada@example.org"); !strings.Contains(out, "(message)") {
		t.Errorf("traced as %s", out)
	}
	list := `{"to":"ben@example.org","data":{"name":"Ben"}}` + "\n" + `{"to":"nobody","data":{"name":"N"}}` + "\n"
	ran := s.run(list, "send", "--recipients", "-", "--channel", "email", "--template", "personal", "--wait")
	if ran.code != 2 || !strings.Contains(ran.out, "1 recipients: 1 accepted") || !strings.Contains(ran.err, "recipient 1: /recipients/1/to") {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	r.one("ben@example.org")
	ran = s.run("", "send", "--to", "ada@example.org", "--channel", "email", "--template", "receipt")
	if ran.code != 1 || !strings.Contains(ran.err, "undefined variable event.order") {
		t.Errorf("ended with %d: %s%s", ran.code, ran.out, ran.err)
	}
	m := into[message](t, s.mustRun("", "send", "--to", "ada@example.org", "--channel", "email", "--subject", "Hi", "--text", "there", "--idempotency-key", "k", "--json"))
	again := into[message](t, s.mustRun("", "send", "--to", "ada@example.org", "--channel", "email", "--subject", "Hi", "--text", "there", "--idempotency-key", "k", "--json"))
	if m.ID == "" || m.ID != again.ID {
		t.Errorf("the same key made %q and %q", m.ID, again.ID)
	}
}
