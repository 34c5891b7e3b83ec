package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

// secretFile writes what a channel's receipts are signed with.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "receipts.secret")
	if err := os.WriteFile(path, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hmacOf(key, text string) []byte {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// told sends a receipt of Fanfare's own form, signed, and returns how it was answered.
func (c *caller) told(path, key, body string) (int, string) {
	c.t.Helper()
	at := strconv.FormatInt(time.Now().Unix(), 10)
	status, text, _ := c.with("").send("POST", path, plain, body, "webhook-id", "r1", "webhook-timestamp", at,
		"webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(hmacOf(key, "r1."+at+"."+body)))
	return status, text
}

// A provider says over HTTP what became of mails: of one, of one of several who share
// a message; again, which changes nothing; and of those of others, which it may not.
func TestAReceiptMovesTheMessageThatItNames(t *testing.T) {
	t.Parallel()
	const key = "a secret that has 32 bytes or so"
	file := secretFile(t, "whsec_"+base64.StdEncoding.EncodeToString([]byte(key)))
	s, r := newsroom(t, sink.Config{KeepFirst: 10}, "rate: unlimited, multicast: 10, receipts: {form: standard, secret_file: "+file+"}")
	other := *s.http
	other.service = "games"
	other.must(200, "POST", "/v1/apply", yaml, "service: games\nchannels:\n  email: {driver: smtp, relay: \"127.0.0.1:1\", from: \"a@example.org\", receipts: {form: standard, secret_file: "+file+"}}\n")
	s.subscribe("ann@example.org", "bob@example.org", "cid@example.org")
	event := s.http.publish(`{"title":"first"}`)
	s.http.completed(event)
	const at = "/receipts/news/email"
	ids := map[string]string{}
	for _, d := range s.http.deliveries(event, "") {
		ids[d.Address] = d.ID
	}
	failed := fmt.Sprintf(`{"delivery":%q,"kind":"failed","status":"5.1.1","text":"550 5.1.1 User unknown"}`, ids["ann@example.org"])
	for what, c := range map[string]struct {
		path, key, body string
		want            int
	}{
		"another service's channel":      {"/receipts/games/email", key, failed, 200}, // taken, and of no message of theirs
		"no such service":                {"/receipts/nobody/email", key, failed, 404},
		"no such channel":                {"/receipts/news/sms", key, failed, 404},
		"another secret":                 {at, "another secret of 32 bytes or so", failed, 401},
		"no document":                    {at, key, `{"kind":"failed"}`, 422},
		"a message that nobody knows":    {at, key, strings.Replace(failed, "dlv-2", "dlv-1", 1), 200},
		"a message of another mail tool": {at, key, `{"message_id":"20130503@mg.example.com","kind":"failed"}`, 200},
	} {
		if status, text := s.http.told(c.path, c.key, c.body); status != c.want {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if got := s.last(event); got["ann@example.org"] != "accepted" {
		t.Fatalf("it was moved already: %v", got)
	}
	for range 2 {
		for _, body := range []string{failed, fmt.Sprintf(`{"message_id":"<%s@example.org>","kind":"delivered","time":"2026-11-20T12:00:00Z"}`, ids["bob@example.org"]),
			fmt.Sprintf(`{"delivery":%q,"kind":"complained"}`, ids["cid@example.org"])} {
			if status, text := s.http.told(at, key, body); status != 200 {
				t.Fatalf("%s: %d %s", body, status, text)
			}
		}
	}
	want := map[string]string{"ann@example.org": "failed: bounced (invalid): 550 5.1.1 User unknown", "bob@example.org": "delivered: ", "cid@example.org": "delivered: the recipient reported it as spam (abuse)"}
	if got := s.last(event); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for p, want := range map[string]string{"ann@example.org": "hard_bounce", "bob@example.org": "", "cid@example.org": "complaint"} {
		if got := s.http.why(p); got != want {
			t.Errorf("%s is suppressed for %q, want %q", p, got, want)
		}
	}

	// The same to all, and one Message-ID: the recipient says whose it is.
	s.http.must(200, "POST", "/v1/apply", yaml, "service: news\ntemplates:\n  story: {subject: \"{{ event.title }}\", text: \"The same to all.\\n\"}\n")
	s.subscribe("dan@example.org", "eve@example.org")
	second := s.http.publish(`{"title":"second"}`)
	s.http.completed(second)
	mails := r.sink.Messages()
	_, id, _ := strings.Cut(string(mails[len(mails)-1].Body), "Message-ID: ")
	id, _, _ = strings.Cut(id, "\r\n")
	if !strings.HasPrefix(id, "<"+second+".") {
		t.Fatalf("the message to several is %q", id)
	}
	if status, text := s.http.told(at, key, fmt.Sprintf(`{"message_id":%q,"recipient":"Eve@example.org","kind":"delivered","text":"OK"}`, id)); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	if got := s.last(second); got["dan@example.org"] != "accepted" || got["eve@example.org"] != "delivered: OK" {
		t.Errorf("of the message to several: %v", got)
	}
}

func TestAWebhookOfMailgunMovesTheMessageThatItNames(t *testing.T) {
	t.Parallel()
	const key = "key-0123456789abcdef"
	s, r := newsroom(t, sink.Config{KeepFirst: 10}, "rate: unlimited, receipts: {form: mailgun, secret_file: "+secretFile(t, key)+"}")
	s.subscribe("ann@example.org", "bob@example.org")
	event := s.http.publish(`{"title":"first"}`)
	s.http.completed(event)
	id := map[string]string{}
	for _, m := range r.sink.Messages() {
		_, rest, _ := strings.Cut(string(m.Body), "Message-ID: <")
		id[m.To[0]], _, _ = strings.Cut(rest, ">")
	}
	webhook := func(token, to string) string {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		return fmt.Sprintf(`{"signature":{"timestamp":%q,"token":%q,"signature":%q},"event-data":{"event":"failed","severity":"permanent","reason":"bounce","recipient":%q,
			"timestamp":%s.25,"message":{"headers":{"message-id":%q}},"delivery-status":{"code":552,"message":"5.2.2 The mailbox is full"}}}`,
			at, token, hex.EncodeToString(hmacOf(key, at+token)), to, at, id[to])
	}
	post := func(body string) int {
		status, _, _ := s.http.with("").send("POST", "/receipts/news/email", plain, body)
		return status
	}
	ann := webhook("t1", "ann@example.org")
	if first, again := post(ann), post(ann); first != 200 || again != 200 {
		t.Fatalf("%d, and again %d", first, again)
	}
	// The signature of an intercepted webhook does not verify another content.
	forged := strings.ReplaceAll(strings.ReplaceAll(ann, "ann@example.org", "bob@example.org"), id["ann@example.org"], id["bob@example.org"])
	if status := post(forged); status != 401 {
		t.Errorf("a document with the token of another: %d", status)
	}
	want := map[string]string{"ann@example.org": "failed: bounced (full): 5.2.2 The mailbox is full", "bob@example.org": "accepted"}
	if got := s.last(event); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if b := s.http.broadcast(event); b.Counts != (fanfare.Counts{fanfare.Accepted: 1, fanfare.Failed: 1}) {
		t.Errorf("the counts are %v", b.Counts)
	}
}
