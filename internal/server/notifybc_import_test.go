package server_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/smtp"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
)

// startNotifyBCWithInbound is startNotifyBC with a server for returned mail, whose address it returns, and more members of the service.
func startNotifyBCWithInbound(t *testing.T, more, service string) (notifyBC, string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "notifybc.yaml")
	if err := os.WriteFile(file, []byte("service: news\nlisten: 127.0.0.1:0\n"+more), 0o600); err != nil {
		t.Fatal(err)
	}
	s := startChanged(t, sink.Inject{}, func(c *config.Config) {
		c.NotifyBC, c.Inbound, c.InboundDomains = file, address, []string{"returns.example.org"}
	})
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf("service: news\nmatching_budget: 100ms\nchannels:\n  email: {driver: smtp, relay: %q, from: \"News <news@example.org>\", rate: unlimited, retry: [1s], returns: returns.example.org}\n%s", s.addr, service))
	return notifyBC{s}, address
}

// imported sends documents of an export, and returns the answer.
func (s notifyBC) imported(collection string, documents ...string) map[string]any {
	s.t.Helper()
	return s.answer(200, "POST", "/import/"+collection, strings.Join(documents, "\n"))
}

// exported are documents as mongoexport writes them.
func exportedSubscription(id, code, state, address string) string {
	return fmt.Sprintf(`{"_id":{"$oid":%q},"serviceName":"myService","channel":"email","userChannelId":%q,"state":%q,"unsubscriptionCode":%q,`+
		`"confirmationRequest":{"confirmationCodeRegex":"\\d{5}","confirmationCode":"54321","sendRequest":true},"broadcastPushNotificationFilter":"contains_ci(title,'x')",`+
		`"created":{"$date":"2021-05-06T07:08:09.123Z"},"updated":{"$date":{"$numberLong":"1620284889123"}},"createdBy":{"role":"SuperAdmin"},"own":{"$numberInt":"7"},"__v":0}`, id, address, state, code)
}

func (s notifyBC) subscription(id string) map[string]any {
	s.t.Helper()
	found := s.list("/subscriptions?filter=" + url.QueryEscape(`{"where":{"id":"`+id+`"}}`))
	if len(found) != 1 {
		s.t.Fatalf("subscription %s: %v", id, found)
	}
	return found[0]
}

const (
	confirmedID   = "5f1d7b2e9c8a4b0012345671"
	unconfirmedID = "5f1d7b2e9c8a4b0012345672"
	deletedID     = "5f1d7b2e9c8a4b0012345673"
	mailedID      = "5f1d7b2e9c8a4b0012345674"
)

// An imported installation keeps its links, mail addresses, people and records, and a second import changes nothing.
func TestNotifyBCImportKeepsWhatPeopleHold(t *testing.T) {
	s, to := startNotifyBCWithInbound(t, "", "")
	documents := []string{
		exportedSubscription(confirmedID, "11111", "confirmed", "Ann@Example.com"), exportedSubscription(unconfirmedID, "22222", "unconfirmed", "bob@example.com"),
		exportedSubscription(deletedID, "33333", "deleted", "cid@example.com"), exportedSubscription(mailedID, "44444", "confirmed", "dan@example.com"),
		`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345675"},"channel":"email"}`, `{"_id":`,
	}
	first := s.imported("subscription", documents...)
	if wrong, _ := first["errors"].([]any); first["stored"] != 4.0 || len(wrong) != 2 || wrong[0].(map[string]any)["index"] != 5.0 || !strings.Contains(fmt.Sprint(wrong[1]), "serviceName") {
		t.Fatalf("the import answers %v", first)
	}
	got := s.subscription(confirmedID)
	if got["state"] != "confirmed" || got["userChannelId"] != "Ann@Example.com" || got["unsubscriptionCode"] != "11111" || got["created"] != "2021-05-06T07:08:09.123Z" || got["own"] != 7.0 ||
		got["serviceName"] != "myService" || got["broadcastPushNotificationFilter"] != "contains_ci(title,'x')" {
		t.Errorf("imported %v", got)
	}
	if state := s.subscription(unconfirmedID)["state"]; state != "unconfirmed" {
		t.Errorf("an unconfirmed subscription is %v", state)
	}
	if state := s.subscription(deletedID)["state"]; state != "deleted" {
		t.Errorf("a deleted subscription is %v", state)
	}

	// The links and addresses of old mails.
	if status, _, _ := s.ask("GET", "/subscriptions/"+confirmedID+"/unsubscribe?unsubscriptionCode=99999", "", anonymous...); status != 403 {
		t.Errorf("a wrong code is answered with %d", status)
	}
	s.answer(200, "GET", "/subscriptions/"+confirmedID+"/unsubscribe?unsubscriptionCode=11111", "", anonymous...)
	s.answer(200, "GET", "/subscriptions/"+unconfirmedID+"/verify?confirmationCode=54321", "", anonymous...)
	s.answer(200, "GET", "/subscriptions/"+deletedID+"/unsubscribe/undo?unsubscriptionCode=33333", "", anonymous...)
	for id, want := range map[string]string{confirmedID: "deleted", unconfirmedID: "confirmed", deletedID: "confirmed"} {
		if state := s.subscription(id)["state"]; state != want {
			t.Errorf("subscription %s is %v after its link, want %s", id, state, want)
		}
	}
	if err := smtp.SendMail(to, nil, "dan@example.com", []string{"un-" + mailedID + "-99999@returns.example.org"}, []byte("Subject: unsubscribe\r\n\r\n")); err == nil {
		t.Error("an address with a wrong code is accepted")
	}
	bounced := "From: mailer-daemon@mx.example.net\r\nSubject: Undelivered\r\nMIME-Version: 1.0\r\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nfailed\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.net\r\n\r\nFinal-Recipient: rfc822; dan@example.com\r\nAction: failed\r\nStatus: 5.1.1\r\n" +
		"Diagnostic-Code: smtp; 550 5.1.1 user unknown\r\n\r\n--b--\r\n"
	if err := smtp.SendMail(to, nil, "", []string{"BN-" + mailedID + "-44444@returns.example.org"}, []byte(bounced)); err != nil {
		t.Fatal(err)
	}
	list := s.list("/bounces")
	if len(list) != 1 || list[0]["userChannelId"] != "dan@example.com" || list[0]["hardBounceCount"] != 1.0 || !strings.Contains(fmt.Sprint(list[0]["bounceMessages"]), "user unknown") {
		t.Errorf("bounces %v", list)
	}
	if err := smtp.SendMail(to, nil, "dan@example.com", []string{"un-" + mailedID + "-44444@returns.example.org"}, []byte("Subject: unsubscribe\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if state := s.subscription(mailedID)["state"]; state != "deleted" {
		t.Errorf("a subscription is %v after mail to its address", state)
	}
	s.mails(1) // the acknowledgement to the other
	if reason := s.suppressed("dan@example.com"); reason != "hard_bounce" {
		t.Errorf("an address that does not exist is suppressed for %q", reason)
	}

	again := s.imported("subscription", documents[:4]...)
	if again["stored"] != 0.0 || again["unchanged"] != 4.0 || s.subscription(confirmedID)["state"] != "deleted" {
		t.Errorf("a second import answers %v", again)
	}
}

func TestNotifyBCImportKeepsPeopleAndRecords(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	hash, err := bcrypt.GenerateFromPassword([]byte("Old_password1"), 10)
	if err != nil {
		t.Fatal(err)
	}
	const admin = "5f1d7b2e9c8a4b0012345676"
	token := strings.Repeat("aB3", 21) + "z"
	files := map[string][]string{
		"administrator":  {`{"_id":{"$oid":"` + admin + `"},"email":"boss@example.org","username":"boss","created":{"$date":"2021-01-01T00:00:00Z"}}`},
		"usercredential": {`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345677"},"userId":"` + admin + `","password":"` + string(hash) + `"}`},
		"accesstoken":    {`{"_id":"` + token + `","userId":"` + admin + `","name":"robot","created":{"$date":"2021-01-01T00:00:00Z"}}`},
		"configuration": {`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345678"},"name":"subscription","serviceName":"myService","value":{"confirmationAcknowledgements":{"successMessage":"Welcome back"}}}`,
			`{"_id":{"$oid":"5f1d7b2e9c8a4b0012345679"},"name":"rsa","value":{"private":"x"}}`},
		"bounce": {`{"_id":{"$oid":"5f1d7b2e9c8a4b001234567a"},"channel":"email","userChannelId":"eve@example.com","hardBounceCount":{"$numberInt":"3"},"state":"active","bounceMessages":[{"date":{"$date":"2021-01-01T00:00:00Z"},"message":"x"}]}`},
		"notification": {`{"_id":{"$oid":"5f1d7b2e9c8a4b001234567b"},"serviceName":"myService","channel":"email","isBroadcast":true,"state":"sent","message":{"subject":"s"},"dispatch":{"successful":["` + confirmedID + `"]},"own":1,"created":{"$date":"2021-01-01T00:00:00Z"}}`,
			`{"_id":{"$oid":"5f1d7b2e9c8a4b001234567c"},"serviceName":"myService","channel":"email","userChannelId":"due@example.com","skipSubscriptionConfirmationCheck":true,"state":"new","message":{"from":"a@example.org","subject":"due now","textBody":"t"},"invalidBefore":{"$date":"` +
				time.Now().Add(3*time.Second).UTC().Format(time.RFC3339Nano) + `"},"created":{"$date":"2021-01-01T00:00:00Z"}}`},
	}
	for collection, documents := range files {
		answer := s.imported(collection, documents...)
		skipped, _ := answer["skipped"].([]any)
		if answer["errors"] != nil || int(answer["stored"].(float64))+len(skipped) != len(documents) || (len(skipped) == 1) != (collection == "configuration") {
			t.Errorf("%s: %v", collection, answer)
		}
		if again := s.imported(collection, documents...); again["stored"] != 0.0 {
			t.Errorf("%s: a second import answers %v", collection, again)
		}
	}
	byToken := []string{"Authorization", token, "X-Forwarded-For", "203.0.113.1"} // without the role of this machine
	if who := s.answer(200, "GET", "/administrators/whoami", "", byToken...); who["securityId"] != admin || who["role"] != "Admin" || who["authnStrategy"] != "accessToken" {
		t.Errorf("whoami with an imported token is %v", who)
	}
	s.answer(403, "GET", "/configurations", "", byToken...)
	if got := s.answer(200, "GET", "/administrators/"+admin, "", byToken...); got["email"] != "boss@example.org" || got["created"] != "2021-01-01T00:00:00.000Z" {
		t.Errorf("the administrator is %v", got)
	}
	login := s.answer(200, "POST", "/administrators/login", `{"email":"boss@example.org","password":"Old_password1"}`, anonymous...)
	if who := s.answer(200, "GET", "/administrators/whoami?access_token="+fmt.Sprint(login["token"]), "", "X-Forwarded-For", "203.0.113.1"); who["securityId"] != admin {
		t.Errorf("whoami with a new token is %v", who)
	}
	if got := s.list("/bounces"); len(got) != 1 || got[0]["hardBounceCount"] != 3.0 || got[0]["id"] != "5f1d7b2e9c8a4b001234567a" {
		t.Errorf("bounces %v", got)
	}
	if got := s.answer(200, "GET", "/notifications/5f1d7b2e9c8a4b001234567b", ""); got["state"] != "sent" || got["own"] != 1.0 || !strings.Contains(fmt.Sprint(got["dispatch"]), confirmedID) {
		t.Errorf("the notification is %v", got)
	}
	s.imported("subscription", exportedSubscription(unconfirmedID, "22222", "unconfirmed", "bob@example.com"))
	if _, text, _ := s.ask("GET", "/subscriptions/"+unconfirmedID+"/verify?confirmationCode=54321", "", anonymous...); text != "Welcome back" {
		t.Errorf("the configured text is %q", text)
	}
	if mail := s.mails(1)[0]; !strings.Contains(mail, "due now") {
		t.Errorf("the notification that was due is\n%s", mail)
	}
	if health := s.answer(200, "GET", "/health", "", anonymous...); health["status"] != "ok" {
		t.Errorf("health %v", health)
	}
}

func TestNotifyBCImportIsForSuperAdministrators(t *testing.T) {
	s := startNotifyBC(t, "adminIps: [192.0.2.1]\n", sink.Inject{})
	for _, headers := range [][]string{nil, {"X-Forwarded-For", "192.0.2.1"}, {"X-Real-IP", "192.0.2.1"}, {"SM_UNIVERSALID", "boss"}} {
		s.answer(403, "POST", "/import/subscription", exportedSubscription(confirmedID, "1", "confirmed", "a@example.com"), headers...)
	}
	var who map[string]any
	_, text, _ := s.ask("GET", "/administrators/whoami", "", "X-Forwarded-For", "192.0.2.1")
	if err := json.Unmarshal([]byte(text), &who); err != nil || who["role"] != "Anonymous" {
		t.Errorf("whoami is %s", text)
	}
	if user := s.answer(200, "GET", "/administrators/whoami", "", "SM_UNIVERSALID", "ann"); user["role"] != "AuthenticatedUser" || user["securityId"] != "ann" {
		t.Errorf("whoami of a SiteMinder user is %v", user)
	}
}
