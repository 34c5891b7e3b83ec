package capture

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// list is a queue in memory.
type list struct {
	waiting  []*driver.Message
	hand     map[*driver.Message]bool // true once released
	reported []string
	refuse   string // the recipient that Release refuses
}

func (d *list) Next(context.Context, bool) (*driver.Message, error) {
	if len(d.waiting) == 0 {
		return nil, nil
	}
	message := d.waiting[0]
	d.waiting, d.hand[message] = d.waiting[1:], false
	return message, nil
}

func (d *list) Release(l *driver.Message) bool {
	if released, has := d.hand[l]; !has || released {
		panic("released what it has not")
	}
	d.hand[l] = true
	if l.To == d.refuse {
		delete(d.hand, l)
		return false
	}
	return true
}

func (d *list) ReleaseAll(messages []*driver.Message) (left []*driver.Message, released bool) {
	for _, l := range messages {
		if released, has := d.hand[l]; !has || released {
			panic("released what it has not")
		}
		if l.To == d.refuse {
			delete(d.hand, l)
			continue
		}
		left = append(left, l)
	}
	if released = len(left) == len(messages); released {
		for _, l := range messages {
			d.hand[l] = true
		}
	}
	return left, released
}

func (d *list) ReportAll(messages []*driver.Message, outcomes []driver.Outcome) error {
	for i, l := range messages {
		if err := d.Report(l, outcomes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *list) TakeSameContent([]*driver.Message, *driver.Message, int) []*driver.Message {
	panic("a captured message was sent with others")
}

func (d *list) Failover(*driver.Message, driver.Outcome) bool { return false }

func (d *list) Report(l *driver.Message, o driver.Outcome) error {
	if !d.hand[l] {
		panic("reported what it has not released")
	}
	delete(d.hand, l)
	d.reported = append(d.reported, l.To+" by "+o.Relay)
	return nil
}

func (d *list) Return(l *driver.Message) {
	if released, has := d.hand[l]; !has || released {
		panic("returned what it has not")
	}
	delete(d.hand, l)
	d.waiting = append([]*driver.Message{l}, d.waiting...)
}

// recordingDriver records what it sends. It holds two messages at a time, like a driver
// that sends an envelope with the previous body.
type recordingDriver struct {
	name string
	sent []*driver.Message
	runs int
}

func (w *recordingDriver) Serve(ctx context.Context, queue driver.Queue) error {
	w.runs++
	message, err := queue.Next(ctx, true)
	for message != nil {
		behind, _ := queue.Next(ctx, false)
		if queue.Release(message) {
			w.sent = append(w.sent, message)
			if err := queue.Report(message, driver.Outcome{Relay: w.name}); err != nil {
				return err
			}
		}
		if message = behind; message == nil {
			message, err = queue.Next(ctx, true)
		}
	}
	return err
}

func queue(to ...string) *list {
	d := &list{hand: map[*driver.Message]bool{}}
	for _, one := range to {
		d.waiting = append(d.waiting, &driver.Message{From: "news@example.org", To: one, Body: []byte("Subject: to " + one + "\r\n\r\n")})
	}
	return d
}

func TestCapturedMessagesHaveTheHeader(t *testing.T) {
	to, d := &recordingDriver{name: "capture"}, queue("a@example.org", "b@example.org", "c@example.org")
	d.refuse = "b@example.org"
	if err := New("news/mail", to).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a@example.org by capture", "c@example.org by capture"}; !slices.Equal(d.reported, want) {
		t.Errorf("reported %q", d.reported)
	}
	for _, l := range to.sent {
		if !strings.HasPrefix(string(l.Body), "X-Fanfare-Captured: news/mail\r\nSubject: to "+l.To+"\r\n") {
			t.Errorf("captured %q", l.Body)
		}
	}
}

func TestOnlyAllowedRecipientsGetMessages(t *testing.T) {
	allow := NewAllow([]string{"Tester@example.org", "@staging.example", "hooks.example", "127.0.0.1:99"})
	for to, leaves := range map[string]bool{
		"tester@example.org": true, "TESTER@EXAMPLE.ORG": true, "other@example.org": false, "tester@example.org.evil.example": false,
		"a@staging.example": true, "a@sub.staging.example": false, "a@notstaging.example": false, "staging.example": false, "": false,
		"https://hooks.example/x": true, "https://hooks.example:8443/x": true, "https://evil.example/hooks.example": false,
		"https://127.0.0.1:99/": true, "https://127.0.0.1:98/": false, "https://tester@example.org/": false, "://": false,
	} {
		if allow.Has(to) != leaves {
			t.Errorf("%q is allowed: %v", to, !leaves)
		}
	}
	var nobody Allow
	if nobody.Has("a@example.org") {
		t.Error("the zero Allow allows an address")
	}
}

// In any order, each message is sent once by the right driver.
func TestEachMessageIsSentOnceByItsDriver(t *testing.T) {
	for pattern := range 64 {
		var people []string
		for i := range 6 {
			people = append(people, fmt.Sprintf("p%d@%s.example", i, map[bool]string{true: "real", false: "other"}[pattern>>i&1 == 1]))
		}
		own, to, d := &recordingDriver{name: "real"}, &recordingDriver{name: "capture"}, queue(people...)
		if err := NewSelective("news/mail", own, to, NewAllow([]string{"@real.example"})).Serve(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if len(d.reported) != 6 || len(d.hand) != 0 || len(d.waiting) != 0 {
			t.Fatalf("pattern %b: reported %q", pattern, d.reported)
		}
		for _, l := range own.sent {
			if !strings.HasSuffix(l.To, "@real.example") || strings.Contains(string(l.Body), Header) {
				t.Errorf("sent: %s %q", l.To, l.Body)
			}
		}
		for _, l := range to.sent {
			if !strings.HasSuffix(l.To, "@other.example") || !strings.HasPrefix(string(l.Body), Header) {
				t.Errorf("captured: %s %q", l.To, l.Body)
			}
		}
	}
}

func TestCapturedWebhookBecomesAMail(t *testing.T) {
	document := `{"title":"` + strings.Repeat("long ", 50) + `"}`
	d, to := queue(), &recordingDriver{name: "capture"}
	d.waiting = []*driver.Message{{To: "https://hooks.example/x", Body: []byte(document)}}
	if err := New("news/hook", to).Serve(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if want := []string{"https://hooks.example/x by capture"}; !slices.Equal(d.reported, want) {
		t.Errorf("reported %q", d.reported)
	}
	m, err := mail.ReadMessage(strings.NewReader(string(to.sent[0].Body)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(base64.NewDecoder(base64.StdEncoding, m.Body))
	if err != nil || string(body) != document || m.Header.Get("Subject") != "POST https://hooks.example/x" || m.Header.Get(Header) != "news/hook" || to.sent[0].To != PlaceholderAddress {
		t.Errorf("%v, %q, %v, to %s", err, body, m.Header, to.sent[0].To)
	}
}

func TestSubjectOfACapturedWebhookIsValid(t *testing.T) {
	for _, url := range []string{"https://hooks.example/" + strings.Repeat("x", 4000), "https://hooks.example/" + strings.Repeat("é", 2000)} {
		message := driver.Message{To: url, Body: []byte("{}")}
		asMail(&message)
		for line := range strings.SplitSeq(string(message.Body), "\r\n") {
			if len(line) > 998 {
				t.Errorf("a line has %d bytes: %.40q", len(line), line)
			}
			if !utf8.ValidString(line) || strings.HasPrefix(line, "Subject:") && (!strings.HasPrefix(line, "Subject: POST "+url[:800]) || !strings.HasSuffix(line, "...")) {
				t.Errorf("the line is %q", line)
			}
		}
	}
}
