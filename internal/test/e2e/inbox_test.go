package e2e

import (
	"bufio"
	"fmt"
	"net"
	"regexp"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// inboxes is the document of a service that sends to mailboxes and, slowly, to others.
const inboxes = `service: news
channels:
  inbox: {driver: inbox, from: "News <news@example.org>", %s}
  archive: {driver: file, path: %q, from: "News <news@example.org>"}
topics:
  story: {template: story}
templates:
  story: {subject: "{{ event.title }}", text: "Hello {{ subscriber.address }}"}
`

// inboxServer is a server with the document, and n people who have an inbox.
func inboxServer(t *testing.T, settings string, n int, flags ...string) *server {
	t.Helper()
	s := serve(t, flags...)
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(inboxes, settings, t.TempDir()))
	var b strings.Builder
	for _, who := range crowd(n) {
		fmt.Fprintf(&b, `{"topic":"story","channel":"inbox","to":%q}`+"\n", who)
	}
	if sum := into[summary](t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())); sum.Created != n {
		t.Fatalf("of %d subscriptions: %+v", n, sum)
	}
	return s
}

func TestAMessageInAnInboxIsRecalled(t *testing.T) {
	t.Parallel()
	const people = 5
	s := inboxServer(t, "rate: unlimited", people)
	s.http.subscribe(`{"id":"paper","topic":"story","channel":"archive","to":"person1@example.org"}`)
	event, other := s.http.publish(`{"title":"wrong"}`), s.http.publish(`{"title":"right"}`)
	s.http.completed(other)
	b := s.http.completed(event)
	if b.Counts[fanfare.Delivered] != people || b.Counts[fanfare.Accepted] != 1 || b.Inbox == nil || b.Inbox.Stored != people || b.Inbox.Read != 0 || !b.Inbox.RecalledAt.IsZero() {
		t.Fatalf("before the recall: %v, inbox %+v", b.Counts, b.Inbox)
	}
	s.mustRun("", "recall", event)
	s.http.must(204, "POST", "/v1/broadcasts/"+event+"/recall", "", "") // again, which changes nothing
	eventually(t, "the messages are removed", func() bool { b = s.http.broadcast(event); return b.Inbox.Recalled == people })
	if b.Counts[fanfare.Delivered] != people || b.Inbox.RecalledAt.IsZero() {
		t.Errorf("after the recall: %v, inbox %+v", b.Counts, b.Inbox)
	}
	for _, d := range s.http.deliveries(event, "") {
		if d.RecalledAt.IsZero() != (d.Channel != "inbox") || !d.ReadAt.IsZero() || !d.RemovedAt.IsZero() || !d.ExpiredAt.IsZero() {
			t.Errorf("delivery over %s: recalled %s, read %s, removed %s, expired %s", d.Channel, d.RecalledAt, d.ReadAt, d.RemovedAt, d.ExpiredAt)
		}
	}
	if text := s.mustRun("", "trace", event); !strings.Contains(text, "0 read, 5 recalled at") {
		t.Errorf("the trace is %s", text)
	}
	if text := s.mustRun("", "trace", event, "--recipient", "person3@example.org"); !strings.Contains(text, "recalled") {
		t.Errorf("the trace of a recipient is %s", text)
	}
	if b = s.http.broadcast(other); b.Inbox.Recalled != 0 {
		t.Errorf("the other event has %+v", b.Inbox)
	}
	if audit := s.http.must(200, "GET", "/v1/audit?action=recall", "", ""); !strings.Contains(audit, event) {
		t.Errorf("the audit log has %s", audit)
	}
}

func TestMessagesThatAreNotInAMailboxYetAreCancelledByARecall(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited", 4)
	s.http.subscribe(`{"id":"paper","topic":"story","channel":"archive","to":"person1@example.org"}`)
	s.mustRun("", "pause", "--service", "news")
	event := s.http.publish(`{"title":"wrong"}`)
	eventually(t, "the event is matched", func() bool { return s.http.broadcast(event).Messages == 5 })
	s.mustRun("", "recall", event)
	s.stop()
	s.start()
	s.mustRun("", "resume", "--service", "news")
	if b := s.http.completed(event); b.Counts[fanfare.Cancelled] != 4 || b.Counts[fanfare.Accepted] != 1 || b.Inbox == nil || b.Inbox.Stored != 0 || b.Inbox.RecalledAt.IsZero() {
		t.Errorf("the broadcast ended with %v, inbox %+v", b.Counts, b.Inbox)
	}
}

func TestMessagesInInboxesExpire(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited, keep: 1h", 3)
	event := s.http.publish(`{"title":"today"}`)
	b := s.http.completed(event)
	if b.Inbox == nil || b.Inbox.ExpiresAt.IsZero() {
		t.Fatalf("the setting keep is without effect: %+v", b.Inbox)
	}
	s.mustRun("", "expire", event, "--never")
	if b = s.http.broadcast(event); !b.Inbox.ExpiresAt.IsZero() {
		t.Errorf("it still expires at %s", b.Inbox.ExpiresAt)
	}
	if m := s.http.refused(422, "PUT", "/v1/broadcasts/"+event+"/expiry", plain, `{}`); m.Pointer != "/at" {
		t.Errorf("an empty body was refused with %+v", m)
	}
	if m := s.http.refused(422, "PUT", "/v1/broadcasts/"+event+"/expiry", plain, `{"at":"tomorrow"}`); m.Pointer != "/at" {
		t.Errorf("no time was refused with %+v", m)
	}
	s.mustRun("", "expire", event, "--at", "2026-11-20T08:00:00Z")
	eventually(t, "the messages are removed", func() bool { b = s.http.broadcast(event); return b.Inbox.Expired == 3 })
	for _, d := range into[client.DeliveryPage](t, s.http.must(200, "GET", "/v1/events/"+event+"/deliveries", "", "")).Deliveries {
		if d.State != "delivered" || d.ExpiredAt.IsZero() || !d.RecalledAt.IsZero() {
			t.Errorf("delivery %+v", d)
		}
	}
}

func TestOnlyBroadcastsWithInboxMessagesCanBeRecalled(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited", 1)
	event := s.http.publish(`{"title":"mine"}`)
	s.http.completed(event)
	games := *s.http
	games.service = "games"
	games.must(200, "POST", "/v1/apply", yaml, "service: games\n")
	key := into[struct{ Key string }](t, games.must(201, "POST", "/v1/keys", plain, `{"service":"games","name":"other"}`))
	for _, c := range []struct{ method, path, body string }{{"POST", "/recall", ""}, {"PUT", "/expiry", `{"at":null}`}} {
		games.with(key.Key).refused(404, c.method, "/v1/broadcasts/"+event+c.path, plain, c.body)
	}
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\ntopics:\n  dull: {template: story}\n")
	s.http.subscribe(`{"id":"paper","topic":"dull","channel":"archive","to":"person0@example.org"}`)
	answer := into[accepted](t, s.http.must(202, "POST", "/v1/topics/dull/events", plain, `{"title":"on paper"}`))
	paper := answer.Events[0].ID
	s.http.completed(paper)
	if m := s.http.refused(409, "POST", "/v1/broadcasts/"+paper+"/recall", "", ""); !strings.Contains(m.Detail+m.Hint, "inbox") {
		t.Errorf("refused with %+v", m)
	}
	if b := s.http.broadcast(paper); b.Inbox != nil {
		t.Errorf("a broadcast without an inbox has %+v", b.Inbox)
	}
}

// imapListen finds the address of the IMAP listener in the log.
var imapListen = regexp.MustCompile(`IMAP.*listen=([0-9.:]+)`)

// A reader is a raw connection to the IMAP server of the program.
type reader struct {
	t *testing.T
	net.Conn
	in *bufio.Reader
	n  int
}

// opened logs in to the mailbox of an address with a new app password, and selects the inbox.
func (s *server) opened(address string) *reader {
	s.t.Helper()
	password := strings.TrimSpace(s.mustRun("", "mailbox", "password", "create", address, "--name", "phone of "+address))
	password, _, _ = strings.Cut(password, "\n")
	r := s.imap()
	r.do(fmt.Sprintf("LOGIN %q %q", address, password))
	r.do("SELECT INBOX")
	return r
}

// tryLogin returns the status of the response to a login: OK, NO or BAD.
func (s *server) tryLogin(address, password string) string {
	s.t.Helper()
	r := s.imap()
	if _, err := fmt.Fprintf(r, "t LOGIN %q %q\r\n", address, password); err != nil {
		s.t.Fatal(err)
	}
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			s.t.Fatal(err)
		}
		if rest, ok := strings.CutPrefix(line, "t "); ok {
			status, _, _ := strings.Cut(rest, " ")
			return status
		}
	}
}

// imap has connected to the IMAP server.
func (s *server) imap() *reader {
	s.t.Helper()
	found := imapListen.FindStringSubmatch(s.logged())
	if found == nil {
		s.t.Fatalf("the log has no IMAP listener: %s", s.logged())
	}
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", found[1])
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	return &reader{t: s.t, Conn: conn, in: bufio.NewReader(conn)}
}

// do sends a command and returns the response, which must be OK.
func (r *reader) do(command string) string {
	r.t.Helper()
	r.n++
	tag := fmt.Sprintf("t%d", r.n)
	if _, err := fmt.Fprintf(r, "%s %s\r\n", tag, command); err != nil {
		r.t.Fatal(err)
	}
	var all strings.Builder
	for {
		line, err := r.in.ReadString('\n')
		all.WriteString(line)
		if err != nil || strings.HasPrefix(line, tag+" ") && !strings.HasPrefix(line, tag+" OK") {
			r.t.Fatalf("%s: %s, %v", command, all.String(), err)
		}
		if strings.HasPrefix(line, tag+" ") {
			return all.String()
		}
	}
}

// tryAppend adds a message to a folder and returns the status of the response: OK, NO or BAD.
func (r *reader) tryAppend(folder, mail string) string {
	r.t.Helper()
	r.n++
	tag := fmt.Sprintf("t%d", r.n)
	if _, err := fmt.Fprintf(r, "%s APPEND %q {%d}\r\n", tag, folder, len(mail)); err != nil {
		r.t.Fatal(err)
	}
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			r.t.Fatal(err)
		}
		if strings.HasPrefix(line, "+") {
			if _, err := fmt.Fprintf(r, "%s\r\n", mail); err != nil {
				r.t.Fatal(err)
			}
		}
		if rest, ok := strings.CutPrefix(line, tag+" "); ok {
			status, _, _ := strings.Cut(rest, " ")
			return status
		}
	}
}

func TestOpeningAMessageSetsItsReadTime(t *testing.T) {
	t.Parallel()
	s := inboxServer(t, "rate: unlimited", 2, "--imap-listen", "127.0.0.1:0")
	event := s.http.publish(`{"title":"hello"}`)
	s.http.completed(event)
	r := s.opened("person1@example.org")
	if text := r.do("FETCH 1 BODY.PEEK[]"); !strings.Contains(text, "Hello person1@example.org") || !strings.Contains(text, "Subject: hello") {
		t.Errorf("the mailbox has %s", text)
	}
	if b := s.http.broadcast(event); b.Inbox.Read != 0 {
		t.Errorf("before it is opened: %+v", b.Inbox)
	}
	r.do("FETCH 1 BODY[]")
	if b := s.http.broadcast(event); b.Inbox.Read != 1 || b.Inbox.Stored != 2 {
		t.Errorf("after it is opened: %+v", b.Inbox)
	}
	read := func() (at time.Time) {
		t.Helper()
		for _, d := range s.http.deliveries(event, "") {
			if d.ReadAt.IsZero() == (d.Address == "person1@example.org") || d.State != "delivered" {
				t.Errorf("the delivery to %s is %s and was read at %s", d.Address, d.State, d.ReadAt)
			}
			if !d.ReadAt.IsZero() {
				at = d.ReadAt
			}
		}
		return at
	}
	at := read()
	r.do(`STORE 1 -FLAGS (\Seen)`)
	if again := read(); !again.Equal(at) {
		t.Errorf("marking it as unread changed the time from %s to %s", at, again)
	}
	r.do(`STORE 1 +FLAGS (\Deleted)`)
	r.do("EXPUNGE")
	for _, d := range s.http.history("person1@example.org") {
		if d.RemovedAt.IsZero() || !d.ReadAt.Equal(at) {
			t.Errorf("after its removal it was read at %s and removed at %s", d.ReadAt, d.RemovedAt)
		}
	}
}

// A personalLine is a line of the export of a person.
type personalLine struct {
	Type    string
	Mailbox struct {
		Address string
		Folders []struct {
			Name     string
			Messages int64
		}
		AppPasswords []struct{ Name string } `json:"app_passwords"`
	}
	Mail struct {
		Folder  string
		Flags   []string
		Content []byte
	}
}

// mailboxOf returns the lines of the export of a person about the mailbox.
func (s *server) mailboxOf(id string) (all []personalLine) {
	s.t.Helper()
	for line := range strings.Lines(s.http.must(200, "GET", "/v1/subscribers/"+id+"/export", "", "")) {
		if one := into[personalLine](s.t, line); one.Type == "mailbox" || one.Type == "mail" {
			all = append(all, one)
		}
	}
	return all
}

func TestTheMailboxOfAPersonIsExportedAndErased(t *testing.T) {
	t.Parallel()
	const people = 150 // so many that the messages are stored together
	s := serve(t, "--imap-listen", "127.0.0.1:0")
	s.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(inboxes, "rate: unlimited", t.TempDir()))
	var b strings.Builder
	for i := range people {
		fmt.Fprintf(&b, `{"topic":"story","channel":"inbox","to":"%[1]s@example.org","subscriber":"id-%[1]s"}`+"\n", localPart(i))
	}
	if sum := into[summary](t, s.http.must(200, "POST", "/v1/subscriptions?quiet=true", lines, b.String())); sum.Created != people {
		t.Fatalf("%+v", sum)
	}
	event := s.http.publish(`{"title":"to all"}`)
	s.http.completed(event)
	opens, never, stays := localPart(0), localPart(1), localPart(2)
	r := s.opened(opens + "@example.org")
	r.do("CREATE Travel/2026")
	r.do("COPY 1 Travel/2026")
	r.do(`STORE 1 +FLAGS (\Flagged work)`)

	const alias = "yq7other" // the local parts of the aliases begin with it
	for i := range 200 {
		s.http.must(201, "PUT", fmt.Sprintf("/v1/mailboxes/%s@example.org/aliases/%s%03d@example.org", opens, alias, i), plain, "")
	}

	own := s.mailboxOf("id-" + opens)
	if len(own) != 3 || own[0].Mailbox.Address != strings.ToLower(opens)+"@example.org" && own[0].Mailbox.Address != opens+"@example.org" ||
		len(own[0].Mailbox.AppPasswords) != 1 || own[0].Mailbox.AppPasswords[0].Name != "phone of "+opens+"@example.org" {
		t.Fatalf("the export has %+v", own)
	}
	names := map[string]int64{}
	for _, f := range own[0].Mailbox.Folders {
		names[f.Name] = f.Messages
	}
	if names["INBOX"] != 1 || names["Travel/2026"] != 1 || own[1].Mail.Folder != "INBOX" || own[2].Mail.Folder != "Travel/2026" {
		t.Errorf("the export has the folders %v, and messages in %s and %s", names, own[1].Mail.Folder, own[2].Mail.Folder)
	}
	if fmt.Sprint(own[1].Mail.Flags) != "[flagged work]" || !strings.Contains(string(own[1].Mail.Content), "Hello "+opens) {
		t.Errorf("the message is %v %s", own[1].Mail.Flags, own[1].Mail.Content)
	}
	if unopened := s.mailboxOf("id-" + never); len(unopened) != 2 || !strings.Contains(string(unopened[1].Mail.Content), "Hello "+never) {
		t.Errorf("the export of a mailbox that nobody opened has %+v", unopened)
	}

	for _, who := range []string{opens, never} {
		s.http.must(200, "POST", "/v1/subscribers/id-"+who+"/erase", plain, "{}")
	}
	check := func(when string) {
		t.Helper()
		if files := s.foundIn(opens, never, alias); len(files) > 0 {
			t.Errorf("%s: found in %v", when, files)
		}
		if kept := s.mailboxOf("id-" + stays); len(kept) != 2 || !strings.Contains(string(kept[1].Mail.Content), "Hello "+stays) {
			t.Errorf("%s: another person has %+v", when, kept)
		}
	}
	check("while the server runs")
	if got := s.http.broadcast(event).Inbox; got.Stored != people {
		t.Errorf("the counts are %+v", got)
	}
	s.mustStop()
	if files := s.foundIn(opens, never, alias); len(files) > 0 {
		t.Errorf("after the stop: found in %v", files)
	}
	s.start()
	check("after a restart")
}
