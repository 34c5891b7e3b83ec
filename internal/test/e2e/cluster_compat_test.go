package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// compatNode is a node that offers the APIs of other systems.
type compatNode struct {
	*server
	notify, notifybc string // their addresses
}

// compatNode prepares a node that offers the APIs of other systems.
func (c *testCluster) compatNode(name string) compatNode {
	c.t.Helper()
	n := compatNode{notify: pgtest.Address(c.t), notifybc: pgtest.Address(c.t)}
	settings := filepath.Join(c.t.TempDir(), "notifybc.yaml")
	if err := os.WriteFile(settings, []byte("service: news\nlisten: "+n.notifybc+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	n.server = c.node(name, "--notify-listen", n.notify, "--notifybc", settings)
	return n
}

// compatRequest sends a request and decodes the answer.
func compatRequest(t *testing.T, method, address, authorization, body string) (status int, answer map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	response, err := plainHTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s %s: %s %s", method, address, response.Status, text)
	}
	return response.StatusCode, answer
}

// notifyToken returns the header of a client of GOV.UK Notify.
func notifyToken(key string) string {
	encode := base64.RawURLEncoding.EncodeToString
	secret, service := key[len(key)-36:], key[len(key)-73:len(key)-37]
	signed := encode([]byte(`{"typ":"JWT","alg":"HS256"}`)) + "." + encode(fmt.Appendf(nil, `{"iss":%q,"iat":%d}`, service, time.Now().Unix()))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return "Bearer " + signed + "." + encode(mac.Sum(nil))
}

// Each node of a cluster answers the clients of other systems: the node that leads itself, and the others by forwarding. When the leader is killed,
// the clients go on at the other node.
func TestEachNodeAnswersClientsOfOtherSystems(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	r := newRelay(t, sink.Config{KeepFirst: 50})
	leader, standby := c.compatNode("one"), c.compatNode("two")
	c.start(leader.server, standby.server)
	leader.http.must(200, "POST", "/v1/apply", yaml, fmt.Sprintf(`service: news
notify: {email: email}
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited}
templates:
  welcome: {id: 0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01, syntax: notify, subject: Hello, markdown: Welcome}
`, r.addr))
	key := into[struct{ Key string }](t, leader.http.must(201, "POST", "/v1/keys", "application/json", `{"service":"news","notify":"live","name":"web"}`)).Key
	bySystem := func(n compatNode, who string) {
		t.Helper()
		api := "http://" + n.notifybc + "/api"
		eventually(t, "the node answers clients of NotifyBC", func() bool {
			status, made := compatRequest(t, "POST", api+"/subscriptions", "", `{"serviceName":"`+who+`","userChannelId":"`+who+`@example.org","state":"confirmed","confirmationRequest":{"sendRequest":false}}`)
			if status == 503 && made["statusCode"] == 503.0 {
				return false // in the form of NotifyBC
			}
			if status != 200 || made["state"] != "confirmed" {
				t.Fatalf("the node %s answers %d %v", who, status, made)
			}
			return true
		})
		status, sent := compatRequest(t, "POST", api+"/notifications", "", `{"serviceName":"`+who+`","channel":"email","isBroadcast":true,"message":{"subject":"Storm","textBody":"for `+who+`"}}`)
		if successful, _ := sent["dispatch"].(map[string]any)["successful"].([]any); status != 200 || sent["state"] != "sent" || len(successful) != 1 {
			t.Errorf("a broadcast at the node %s answers %d %v", who, status, sent)
		}
		eventually(t, "the node answers clients of Notify", func() bool {
			status, sent := compatRequest(t, "POST", "http://"+n.notify+"/v2/notifications/email", notifyToken(key), `{"email_address":"`+who+`@example.com","template_id":"0a5f0d6e-6c0d-4f5e-8f57-1f6b8b3f9c01"}`)
			if status == 503 && sent["status_code"] == 503.0 {
				return false // in the form of Notify
			}
			if status != 201 || sent["id"] == nil {
				t.Fatalf("the node %s answers %d %v", who, status, sent)
			}
			return true
		})
	}
	bySystem(leader, "leader")
	bySystem(standby, "standby")
	if status, refused := compatRequest(t, "GET", "http://"+standby.notify+"/v2/notifications", "", ""); status != 401 || refused["errors"] == nil {
		t.Errorf("without a token, the other node answers %d %v", status, refused)
	}
	if err := leader.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-leader.gone
	bySystem(standby, "successor")
	eventually(t, "all mails have arrived", func() bool { return r.sink.Stats().Accepted >= 6 })
	got := map[string]int{}
	for _, m := range r.sink.Messages() {
		got[m.To[0]]++
	}
	for _, who := range []string{"leader", "standby", "successor"} {
		if got[who+"@example.org"] != 1 || got[who+"@example.com"] != 1 {
			t.Errorf("the mails are %v", got)
		}
	}
}
