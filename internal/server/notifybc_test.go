package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
)

// notifyBC is a server with the NotifyBC API.
type notifyBC struct{ *testServer }

// startNotifyBC starts a server with the NotifyBC API and the given additional settings.
func startNotifyBC(t *testing.T, more string, inject sink.Inject) notifyBC {
	t.Helper()
	file := filepath.Join(t.TempDir(), "notifybc.yaml")
	if err := os.WriteFile(file, []byte("service: news\nlisten: 127.0.0.1:0\n"+more), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startChanged(t, inject, func(c *config.Config) { c.NotifyBC = file })
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf("service: news\nmatching_budget: 100ms\nchannels:\n  email: {driver: smtp, relay: %q, from: \"News <news@example.org>\", rate: unlimited, retry: [1s, 1s, 1s]}\n", s.addr))
	return notifyBC{s}
}

// ask sends a request with headers, which alternate with their values, and returns status, body and headers.
func (s notifyBC) ask(method, path, body string, headers ...string) (int, string, http.Header) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.app.NotifyBCURL()+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text), response.Header
}

// answer is ask, and fails the test if the response has another status. It decodes an object.
func (s notifyBC) answer(status int, method, path, body string, headers ...string) map[string]any {
	s.t.Helper()
	got, text, _ := s.ask(method, path, body, headers...)
	if got != status {
		s.t.Fatalf("%s %s: got %d, want %d: %s", method, path, got, status, text)
	}
	object := map[string]any{}
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			s.t.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return object
}

// list returns the objects in the answer to GET.
func (s notifyBC) list(path string, headers ...string) (list []map[string]any) {
	s.t.Helper()
	status, text, _ := s.ask("GET", path, "", headers...)
	if status != 200 || json.Unmarshal([]byte(text), &list) != nil {
		s.t.Fatalf("GET %s: %d %s", path, status, text)
	}
	return list
}

// anonymous makes a request from this machine anonymous.
var anonymous = []string{"is_anonymous", "true"}

// mails returns the bodies of the mails that arrived, when there are n.
func (s notifyBC) mails(n int) (mails []string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d mails", n), func() bool { return s.sink.Stats().Accepted >= int64(n) })
	for _, m := range s.sink.Messages() {
		mails = append(mails, string(m.Body))
	}
	return mails
}

var linkPattern = regexp.MustCompile(`http://[^\s"<>]*/api(/[^\s"<>]*)`)

// links returns the paths of the links in a mail, below the root of the API.
func links(mail string) (paths []string) {
	mail = strings.ReplaceAll(strings.ReplaceAll(mail, "=\r\n", ""), "=3D", "=")
	for _, found := range linkPattern.FindAllStringSubmatch(mail, -1) {
		paths = append(paths, found[1])
	}
	return paths
}

// The load scripts of NotifyBC create equal subscriptions at the same time, and send one broadcast, whose answer ends the
// timing.
func TestNotifyBCLoadScriptsWork(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	const n = 300
	var wait sync.WaitGroup
	slots := make(chan struct{}, 100)
	seen := make([]bool, n)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			body := fmt.Sprintf(`{"serviceName":"load","channel":"email","state":"confirmed","index":%d,"confirmationRequest":{"sendRequest":false},"userChannelId":"all@example.com","broadcastPushNotificationFilter":"contains_ci(title,'vancouver') || contains_ci(title,'victoria')"}`, i)
			answer := s.answer(200, "POST", "/subscriptions", body)
			if answer["index"] == float64(i) && answer["state"] == "confirmed" && answer["unsubscriptionCode"] != nil {
				seen[i] = true
			}
		})
	}
	wait.Wait()
	for i := range seen {
		if !seen[i] {
			t.Fatalf("subscription %d was not answered with its members", i)
		}
	}
	if count := s.answer(200, "GET", "/subscriptions/count?where="+url.QueryEscape(`{"serviceName":"load","state":"confirmed"}`), ""); count["count"] != float64(n) {
		t.Errorf("there are %v subscriptions, want %d", count["count"], n)
	}
	sent := s.answer(200, "POST", "/notifications", `{"serviceName":"load","channel":"email","isBroadcast":true,"message":{"from":"sender@example.net","subject":"{title}","htmlBody":"<p>{description}</p><a href=\"{link}\">more</a> {unsubscription_url}"},
		"data":{"title":"Storm in Victoria","description":"`+strings.Repeat("Wind ", 80)+`","pubDate":"Sun, 29 Nov 2026 08:00:00 GMT","link":"https://example.org/1","guid":"1"}}`)
	outcome, _ := sent["dispatch"].(map[string]any)
	if successful, _ := outcome["successful"].([]any); sent["state"] != "sent" || len(successful) != n || len(outcome["candidates"].([]any)) != n || outcome["failed"] != nil {
		t.Errorf("the broadcast answers with state %v and dispatch %.300v", sent["state"], outcome)
	}
	if got := s.sink.Stats().Accepted; got != n {
		t.Errorf("%d mails arrived when the broadcast was answered, want %d", got, n)
	}
	codes := map[string]bool{}
	for _, mail := range s.mails(n) {
		if !strings.Contains(mail, "Subject: Storm in Victoria\r\n") || !strings.Contains(mail, "From: <sender@example.net>") && !strings.Contains(mail, "From: sender@example.net") {
			t.Errorf("a mail is\n%s", mail)
		}
		for _, link := range links(mail) {
			codes[link] = true
		}
	}
	if len(codes) != 10 { // the sink keeps ten mails
		t.Errorf("the mails have %d different links, want 10: %v", len(codes), codes)
	}
}

// People subscribe, confirm, get a broadcast, unsubscribe and come back by the links in their mails.
func TestNotifyBCLinksInMailsWork(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	made := s.answer(200, "POST", "/subscriptions", `{"serviceName":"myService","userChannelId":"Ann@Example.com","data":{"name":"Ann"},"state":"confirmed","id":"1"}`, anonymous...)
	for _, hidden := range []string{"confirmationRequest", "unsubscriptionCode", "createdBy"} {
		if made[hidden] != nil {
			t.Errorf("an anonymous caller sees %s", hidden)
		}
	}
	if id, _ := made["id"].(string); made["state"] != "unconfirmed" || len(id) != 24 || made["userChannelId"] != "Ann@Example.com" {
		t.Errorf("the subscription is %v", made)
	}
	confirm := links(s.mails(1)[0])
	if len(confirm) == 0 {
		t.Fatalf("the mail has no link:\n%s", s.mails(1)[0])
	}
	if status, text, _ := s.ask("GET", strings.Split(confirm[0], "?")[0]+"?confirmationCode=no", "", anonymous...); status != 403 || text != "The subscription could not be confirmed." {
		t.Errorf("a wrong code gets %d %s", status, text)
	}
	if status, text, header := s.ask("GET", confirm[0], "", anonymous...); status != 200 || text != "You are subscribed." || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("the link gets %d %s", status, text)
	}
	broadcast := `{"serviceName":"myService","channel":"email","isBroadcast":true,"message":{"subject":"Hi {subscription::name}","textBody":"{unsubscription_url} {unsubscription_all_url}"}}`
	s.answer(200, "POST", "/notifications", broadcast)
	mail := s.mails(2)[1]
	if !strings.Contains(mail, "Subject: Hi Ann\r\n") || !strings.Contains(mail, "List-Unsubscribe: <http") {
		t.Errorf("the broadcast is\n%s", mail)
	}
	leave := links(mail)[len(links(mail))-2]
	if status, text, _ := s.ask("GET", leave+"0", "", anonymous...); status != 403 {
		t.Errorf("a wrong code gets %d %s", status, text)
	}
	if status, text, _ := s.ask("GET", leave, "", anonymous...); status != 200 || text != "You are unsubscribed." {
		t.Errorf("the link gets %d %s", status, text)
	}
	ack := s.mails(3)[2]
	if !strings.Contains(ack, "service myService") {
		t.Errorf("the acknowledgement is\n%s", ack)
	}
	s.answer(200, "POST", "/notifications", broadcast)
	if n := s.sink.Stats().Accepted; n != 3 {
		t.Errorf("%d mails arrived after the end, want 3", n)
	}
	undo := links(ack)[0]
	if status, text, _ := s.ask("GET", undo, "", anonymous...); status != 200 || text != "You are subscribed again." {
		t.Errorf("the link gets %d %s", status, text)
	}
	s.answer(200, "POST", "/notifications", broadcast)
	s.mails(4)
	if bytes.Contains([]byte(fmt.Sprint(s.list("/subscriptions"))), []byte("unsubscribedAdditionalServices")) {
		t.Error("the subscription still has unsubscribedAdditionalServices")
	}
}
