package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// Text messages go to the SMS provider: the request to confirm, a broadcast to one channel of the service name, and a
// unicast.
func TestNotifyBCTextMessages(t *testing.T) {
	s := startNotifyBC(t, "channels: {email: email, sms: texts}\n", sink.Inject{})
	sent := make(chan map[string]any, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		one := map[string]any{}
		_ = json.Unmarshal(text, &one)
		sent <- one
	}))
	defer provider.Close()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf("service: news\nchannels:\n  texts: {driver: webhook, addresses: phone, url: %q, allow_http: true}\n", provider.URL))
	next := func() map[string]any {
		t.Helper()
		select {
		case one := <-sent:
			return one
		case <-time.After(30 * time.Second):
			t.Fatal("no text message was sent")
			return nil
		}
	}
	made := s.answer(200, "POST", "/subscriptions", `{"serviceName":"a","channel":"sms","userChannelId":"+12505550123","data":{"name":"Ann"}}`, anonymous...)
	ask := next()
	text, _ := ask["text"].(string)
	if ask["to"] != "+12505550123" || !strings.HasPrefix(text, "Your code to subscribe to a is ") {
		t.Fatalf("the request to confirm is %v", ask)
	}
	if _, status := s.ask2("/subscriptions/"+made["id"].(string)+"/verify?confirmationCode="+text[len(text)-5:], anonymous...); status != 200 {
		t.Errorf("the code gets %d", status)
	}
	s.confirmed("a", "a@example.com", "")
	broadcast := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"sms","isBroadcast":true,"message":{"textBody":"{title} for {subscription::name}"},"data":{"title":"Storm"}}`)
	if one := next(); one["text"] != "Storm for Ann" || one["to"] != "+12505550123" || broadcast["state"] != "sent" {
		t.Errorf("the broadcast is %v, state %v", one, broadcast["state"])
	}
	unicast := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"sms","userChannelId":"+12505550123","message":{"textBody":"Hi {subscription::name}"}}`)
	if one := next(); one["text"] != "Hi Ann" || unicast["state"] != "sent" {
		t.Errorf("the unicast is %v, state %v", one, unicast["state"])
	}
	if n := s.sink.Stats().Accepted; n != 0 {
		t.Errorf("%d emails were sent", n)
	}
}
