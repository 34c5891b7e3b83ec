package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// by makes a request that of a user who has signed in with SiteMinder.
func by(user string) []string { return []string{"SM_UNIVERSALID", user} }

// confirmed creates a confirmed subscription and returns its id and its code.
func (s notifyBC) confirmed(service, address, more string) (id, code string) {
	s.t.Helper()
	made := s.answer(200, "POST", "/subscriptions", fmt.Sprintf(`{"serviceName":%q,"userChannelId":%q,"state":"confirmed","confirmationRequest":{"sendRequest":false}%s}`, service, address, more))
	code, _ = made["unsubscriptionCode"].(string)
	return made["id"].(string), code
}

// state returns the state of a subscription.
func (s notifyBC) state(id string) string {
	s.t.Helper()
	list := s.list("/subscriptions?filter=" + url.QueryEscape(fmt.Sprintf(`{"where":{"id":%q}}`, id)))
	if len(list) != 1 {
		s.t.Fatalf("%d subscriptions have the id %s", len(list), id)
	}
	return list[0]["state"].(string)
}

func TestNotifyBCRefusesInTheShapesOfNotifyBC(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	id, _ := s.confirmed("a", "a@example.com", "")
	for _, c := range []struct {
		method, path, body string
		headers            []string
		status             int
		want               string
	}{
		{"GET", "/nothing", "", nil, 404, `{"error":"Not Found","message":"Cannot GET /api/nothing","statusCode":404}`},
		{"POST", "/subscriptions/swift", "{}", nil, 404, `{"error":"Not Found","message":"Cannot POST /api/subscriptions/swift","statusCode":404}`},
		{"GET", "/memory", "", nil, 404, `{"error":"Not Found","message":"Cannot GET /api/memory","statusCode":404}`},
		{"GET", "/subscriptions/" + id, "", nil, 404, `{"error":"Not Found","message":"Cannot GET /api/subscriptions/` + id + `","statusCode":404}`},
		{"GET", "/subscriptions", "", anonymous, 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"GET", "/subscriptions/count", "", anonymous, 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"GET", "/subscriptions/services", "", anonymous, 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"PATCH", "/subscriptions/" + id, "{}", anonymous, 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"PUT", "/subscriptions/" + id, "{}", by("u"), 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"POST", "/notifications", "{}", by("u"), 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"GET", "/notifications", "", anonymous, 403, `{"error":"Forbidden","message":"Forbidden resource","statusCode":403}`},
		{"POST", "/subscriptions", "{", nil, 400, `"error":"Bad Request"`},
		{"POST", "/subscriptions", "[]", nil, 400, `"error":"Bad Request"`},
		{"POST", "/subscriptions", "", nil, 400, `{"message":"serviceName is required","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":"a"}`, nil, 400, `{"message":"userChannelId is required","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":1,"userChannelId":"a@example.com"}`, nil, 400, `{"message":"serviceName must be a string","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":"a","userChannelId":"a@example.com","channel":"fax"}`, nil, 400, `{"message":"channel \"fax\" is not available","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":"a","userChannelId":"a@example.com","broadcastPushNotificationFilter":"a ="}`, nil, 400, `{"message":"broadcastPushNotificationFilter","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":"a","userChannelId":"a@example.com","broadcastPushNotificationFilter":{}}`, nil, 400, `{"message":"broadcastPushNotificationFilter","statusCode":400}`},
		{"POST", "/subscriptions", `{"serviceName":"a","userChannelId":"a@example.com","confirmationRequest":{"confirmationCodeEncrypted":"x"}}`, nil, 400, `confirmationCodeEncrypted is not supported`},
		{"POST", "/subscriptions", `{"serviceName":"a","userChannelId":"a@example.com","x":"` + strings.Repeat("x", 101<<10) + `"}`, nil, 413, `{"message":"request entity too large","statusCode":413}`},
		{"PATCH", "/subscriptions/0123456789abcdef01234567", "{}", nil, 404, `{"statusCode":404}`},
		{"PATCH", "/subscriptions/" + id, "{}", by("u"), 404, `{"statusCode":404}`},
		{"PUT", "/subscriptions/0123456789abcdef01234567", `{"serviceName":"a","userChannelId":"a@example.com"}`, nil, 404, `{"statusCode":404}`},
		{"GET", "/subscriptions?filter={", "", nil, 400, `"statusCode":400`},
		{"GET", "/subscriptions/count?where=" + url.QueryEscape(`{"$where":"1"}`), "", nil, 400, `$where`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"userChannelId":"other@example.com"}`, nil, 403, `{"message":"invalid user","statusCode":403}`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"skipSubscriptionConfirmationCheck":true,"userId":"u"}`, nil, 403, `{"message":"invalid user","statusCode":403}`},
		{"POST", "/notifications", `{"channel":"email","message":{"textBody":"x"},"isBroadcast":true}`, nil, 400, `{"message":"serviceName is required","statusCode":400}`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true}`, nil, 400, `{"message":"message must be an object","statusCode":400}`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{},"isBroadcast":true}`, nil, 400, `{"message":"message has neither textBody nor htmlBody","statusCode":400}`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"isBroadcast":true,"broadcastPushNotificationSubscriptionFilter":"a ="}`, nil, 400, `{"message":"broadcastPushNotificationSubscriptionFilter","statusCode":400}`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x","from":"a\r\nBcc: b"},"isBroadcast":true}`, nil, 400, `is not an address`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"isBroadcast":true,"invalidBefore":"soon"}`, nil, 400, `invalidBefore`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"isBroadcast":true,"asyncBroadcastPushNotification":"ftp://x"}`, nil, 400, `asyncBroadcastPushNotification must be`},
		{"POST", "/notifications", `{"serviceName":"a","channel":"email","message":{"textBody":"x"},"isBroadcast":true,"httpHost":"javascript:1"}`, nil, 400, `httpHost`},
		{"GET", "/notifications/0123456789abcdef01234567", "", nil, 404, `{"statusCode":404}`},
		{"PATCH", "/notifications/0123456789abcdef01234567", "{}", nil, 404, `{"statusCode":404}`},
		{"DELETE", "/notifications/0123456789abcdef01234567", "", nil, 404, `{"statusCode":404}`},
	} {
		status, text, _ := s.ask(c.method, c.path, c.body, c.headers...)
		if status != c.status || !strings.Contains(text, c.want) {
			t.Errorf("%s %s %.150s: %d %s, want %d %s", c.method, c.path, c.body, status, text, c.status, c.want)
		}
	}
	for _, leave := range []string{"/unsubscribe", "/unsubscribe?unsubscriptionCode=x"} {
		if status, text, _ := s.ask("GET", "/subscriptions/"+id+leave, "", anonymous...); status != 403 || text != "The subscription could not be ended." {
			t.Errorf("%s: %d %s", leave, status, text)
		}
	}
	if status, text, _ := s.ask("GET", "/subscriptions/0123456789abcdef01234567/verify", "", anonymous...); status != 404 || text != "The subscription could not be confirmed." {
		t.Errorf("an unknown subscription: %d %s", status, text)
	}
	if n := s.sink.Stats().Accepted; n != 0 {
		t.Errorf("%d mails were sent", n)
	}
}

func TestNotifyBCKeepsWhatClientsStore(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	made := s.answer(200, "POST", "/subscriptions", `{"serviceName":"Water Levels!","userChannelId":"Ann.B@Example.com","state":"confirmed","confirmationRequest":{"sendRequest":false},"unsubscriptionCode":"mine","userId":"ann","data":{"province":"BC"},"extra":{"a":[1,null]},"none":null,"created":"1999-01-01"}`)
	id := made["id"].(string)
	if made["unsubscriptionCode"] != "mine" || made["userId"] != "ann" || fmt.Sprint(made["extra"]) != "map[a:[1 <nil>]]" || made["channel"] != "email" || made["created"] == "1999-01-01" || made["created"] != made["updated"] {
		t.Errorf("the answer is %v", made)
	}
	if _, has := made["none"]; has {
		t.Error("a member without a value is in the answer")
	}
	if author, _ := made["createdBy"].(map[string]any); author["role"] != "SuperAdmin" || author["authnStrategy"] != "ip" || author["securityId"] != "127.0.0.1" {
		t.Errorf("createdBy is %v", made["createdBy"])
	}
	same := s.list("/subscriptions?filter=" + url.QueryEscape(`{"where":{"serviceName":"Water Levels!","data.province":"BC","userChannelId":"Ann.B@Example.com","created":{"$gt":"2020-01-01T00:00:00Z"}}}`))
	if len(same) != 1 || fmt.Sprint(same[0]) != fmt.Sprint(made) {
		t.Errorf("the list has %v, want %v", same, made)
	}
	if services, _ := s.ask2("/subscriptions/services"); services != `["Water Levels!"]` {
		t.Errorf("the services are %s", services)
	}
	// A change takes the address and the data only, and another address must be confirmed.
	changed := s.answer(200, "PATCH", "/subscriptions/"+id, `{"data":{"province":"AB"},"state":"deleted","extra":1,"broadcastPushNotificationFilter":"x"}`)
	if changed["state"] != "confirmed" || fmt.Sprint(changed["data"]) != "map[province:AB]" || fmt.Sprint(changed["extra"]) != "map[a:[1 <nil>]]" || changed["created"] != made["created"] || changed["broadcastPushNotificationFilter"] != nil {
		t.Errorf("the changed subscription is %v", changed)
	}
	if changed = s.answer(200, "PATCH", "/subscriptions/"+id, `{"userChannelId":"new@example.com"}`); changed["state"] != "unconfirmed" || changed["userChannelId"] != "new@example.com" || changed["id"] != id {
		t.Errorf("the moved subscription is %v", changed)
	}
	if replaced := s.answer(200, "PUT", "/subscriptions/"+id, `{"serviceName":"b","userChannelId":"c@example.com","state":"confirmed","only":1}`); replaced["state"] != "confirmed" || replaced["serviceName"] != "b" || replaced["data"] != nil || replaced["only"] != 1.0 || replaced["created"] != made["created"] || replaced["unsubscriptionCode"] != nil {
		t.Errorf("the replaced subscription is %v", replaced)
	}
	if status, text, _ := s.ask("DELETE", "/subscriptions/"+id, ""); status != 200 || text != "You are unsubscribed." || s.state(id) != "deleted" {
		t.Errorf("DELETE: %d %s, %s", status, text, s.state(id))
	}
	if count := s.answer(200, "GET", "/subscriptions/count", ""); count["count"] != 1.0 {
		t.Errorf("the count is %v", count)
	}
}

// ask2 returns the body of the answer to GET, and its status.
func (s notifyBC) ask2(path string, headers ...string) (string, int) {
	s.t.Helper()
	status, text, _ := s.ask("GET", path, "", headers...)
	return text, status
}

func TestNotifyBCUsersSeeTheirOwnSubscriptions(t *testing.T) {
	s := startNotifyBC(t, "subscription: {detectDuplicatedSubscription: true, confirmationAcknowledgements: {redirectUrl: 'https://example.org/done?x=1'}}\n", sink.Inject{})
	made := s.answer(200, "POST", "/subscriptions", `{"serviceName":"a","userChannelId":"u@example.com","unsubscriptionCode":"x"}`, by("u")...)
	id := made["id"].(string)
	if made["userId"] != "u" || made["unsubscriptionCode"] != nil || made["state"] != "unconfirmed" {
		t.Errorf("the user gets %v", made)
	}
	other, _ := s.confirmed("a", "o@example.com", `,"userId":"o"`)
	if list := s.list("/subscriptions", by("u")...); len(list) != 1 || list[0]["id"] != id || list[0]["createdBy"] != nil {
		t.Errorf("the user sees %v", list)
	}
	link := links(s.mails(1)[0])[0]
	status, _, header := s.ask("GET", link, "", anonymous...)
	if status != 302 || header.Get("Location") != "https://example.org/done?channel=email&x=1" {
		t.Errorf("the link redirects with %d to %s", status, header.Get("Location"))
	}
	if status, _, header = s.ask("GET", link+"0", "", anonymous...); status != 302 || header.Get("Location") != "https://example.org/done?channel=email&err=Forbidden&x=1" {
		t.Errorf("a wrong code redirects with %d to %s", status, header.Get("Location"))
	}
	// A second subscription of the address gets the other message.
	s.answer(200, "POST", "/subscriptions", `{"serviceName":"a","userChannelId":"u@example.com"}`, anonymous...)
	if mail := s.mails(2)[1]; !strings.Contains(mail, "You have already subscribed to a") {
		t.Errorf("the mail is\n%s", mail)
	}
	if _, status := s.ask2("/subscriptions/"+other+"/unsubscribe", by("u")...); status != 404 {
		t.Errorf("the end of another user's subscription gets %d", status)
	}
	if _, status := s.ask2("/subscriptions/"+id+"/unsubscribe", by("u")...); status != 200 || s.state(id) != "deleted" {
		t.Errorf("the end of the own subscription gets %d, state %s", status, s.state(id))
	}
	if list := s.list("/subscriptions", by("u")...); len(list) != 0 {
		t.Errorf("the user sees %v", list)
	}
	if _, status := s.ask2("/subscriptions/"+id+"/unsubscribe/undo", by("u")...); status != 403 {
		t.Errorf("the undo of a user gets %d", status)
	}
	if _, status := s.ask2("/subscriptions/" + id + "/unsubscribe/undo"); status != 200 || s.state(id) != "confirmed" {
		t.Errorf("the undo of an administrator gets %d, state %s", status, s.state(id))
	}
}

func TestNotifyBCEndsSeveralServicesTogether(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	for name, form := range map[string]string{"repeated": "additionalServices=b&additionalServices=C", "brackets": "additionalServices[]=b&additionalServices[]=C", "commas": "additionalServices=b,C", "all": "additionalServices=_all"} {
		address := name + "@example.com"
		a, code := s.confirmed("a", address, "")
		b, _ := s.confirmed("b", address, "")
		c, _ := s.confirmed("C", address, "")
		d, _ := s.confirmed("d", address, "")
		e, _ := s.confirmed("b", "e"+address, "")
		if status, text, _ := s.ask("GET", "/subscriptions/"+a+"/unsubscribe?"+form+"&unsubscriptionCode="+code+"&userChannelId="+strings.ToUpper(address), "", anonymous...); status != 200 {
			t.Fatalf("%s: %d %s", name, status, text)
		}
		want := "confirmed"
		if name == "all" {
			want = "deleted"
		}
		if got := []string{s.state(a), s.state(b), s.state(c), s.state(d), s.state(e)}; !slices.Equal(got, []string{"deleted", "deleted", "deleted", want, "confirmed"}) {
			t.Errorf("%s: the states are %v", name, got)
		}
		if status, _, _ := s.ask("GET", "/subscriptions/"+a+"/unsubscribe/undo?unsubscriptionCode="+code, "", anonymous...); status != 200 {
			t.Errorf("%s: undo gets %d", name, status)
		}
		if got := []string{s.state(a), s.state(b), s.state(c), s.state(d)}; !slices.Equal(got, []string{"confirmed", "confirmed", "confirmed", "confirmed"}) {
			t.Errorf("%s: after undo, the states are %v", name, got)
		}
		if status, _, _ := s.ask("GET", "/subscriptions/"+a+"/unsubscribe?unsubscriptionCode="+code+"&userChannelId=x", "", anonymous...); status != 403 {
			t.Errorf("%s: another address gets %d", name, status)
		}
	}
	// replace=true ends the other confirmed subscriptions of the address.
	first, _ := s.confirmed("r", "r@example.com", "")
	second := s.answer(200, "POST", "/subscriptions", `{"serviceName":"r","userChannelId":"r@example.com","confirmationRequest":{"confirmationCode":"42","sendRequest":false}}`)
	if _, status := s.ask2("/subscriptions/"+second["id"].(string)+"/verify?confirmationCode=42&replace=true", anonymous...); status != 200 || s.state(first) != "deleted" {
		t.Errorf("replace gets %d, and the first is %s", status, s.state(first))
	}
}

func TestNotifyBCSubscriptionsCanBeEndedByOurOwnAPI(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	id, code := s.confirmed("a", "a@example.com", "")
	s.must(204, "DELETE", "/v1/subscriptions/"+id, "", "")
	if s.state(id) != "deleted" {
		t.Errorf("the state is %s", s.state(id))
	}
	if _, status := s.ask2("/subscriptions/"+id+"/unsubscribe/undo?unsubscriptionCode="+code, anonymous...); status != 200 || s.state(id) != "confirmed" {
		t.Errorf("undo gets %d, state %s", status, s.state(id))
	}
	if count := s.answer(200, "GET", "/subscriptions/count", ""); count["count"] != 1.0 {
		t.Errorf("the count is %v", count)
	}
}

func TestNotifyBCLimitsWrongCodes(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	id, code := s.confirmed("a", "a@example.com", "")
	for range 10 {
		s.ask("GET", "/subscriptions/"+id+"/unsubscribe?unsubscriptionCode=no", "", anonymous...)
	}
	if _, status := s.ask2("/subscriptions/"+id+"/unsubscribe?unsubscriptionCode="+code, anonymous...); status != 403 {
		t.Errorf("after ten guesses, the right code gets %d", status)
	}
}

func TestNotifyBCUnicast(t *testing.T) {
	s := startNotifyBC(t, "email: {from: 'Default <default@example.org>'}\n", sink.Inject{})
	id, code := s.confirmed("a", "Ann@example.com", `,"userId":"ann","data":{"name":"Ann"}`)
	sent := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","userChannelId":"ann@EXAMPLE.com","message":{"subject":"{subscription::name}","textBody":"{unsubscription_url} {gone}"},"more":1}`)
	if sent["state"] != "sent" || sent["userChannelId"] != "Ann@example.com" || sent["more"] != 1.0 || sent["dispatch"] != nil {
		t.Errorf("the unicast answers %v", sent)
	}
	mail := s.mails(1)[0]
	link := "/subscriptions/" + id + "/unsubscribe?unsubscriptionCode=" + code
	if !strings.Contains(mail, "Subject: Ann\r\n") || !strings.Contains(mail, "{gone}") || links(mail)[0] != link || !strings.Contains(mail, "From: \"Default\" <default@example.org>") && !strings.Contains(mail, "From: Default <default@example.org>") {
		t.Errorf("the mail is\n%s", mail)
	}
	if !strings.Contains(mail, "List-Unsubscribe: <") {
		t.Errorf("the mail has no List-Unsubscribe:\n%s", mail)
	}
	if sent = s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","userId":"ann","message":{"subject":"s","textBody":"x"}}`); sent["state"] != "sent" || sent["userChannelId"] != "Ann@example.com" {
		t.Errorf("by userId: %v", sent)
	}
	if sent = s.answer(200, "POST", "/notifications", `{"serviceName":"none","channel":"email","userChannelId":"b@example.com","skipSubscriptionConfirmationCheck":true,"message":{"subject":"{subscription_id}","textBody":"{subscription_id} {{x}} {% if %}"}}`); sent["state"] != "sent" {
		t.Errorf("without a subscription: %v", sent)
	}
	if mail = s.mails(3)[2]; !strings.Contains(mail, "{subscription_id} {{x}} {% if %}") {
		t.Errorf("the mail without a subscription is\n%s", mail)
	}
	refused := startNotifyBC(t, "", sink.Inject{PermFail: 1})
	if got := refused.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","userChannelId":"b@example.com","skipSubscriptionConfirmationCheck":true,"message":{"subject":"s","textBody":"x"}}`); got["state"] != "error" {
		t.Errorf("a refused mail: %v", got)
	}
	refused.confirmed("a", "c@example.com", "")
	outcome := refused.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"}}`)
	text, _ := json.Marshal(outcome["dispatch"])
	if outcome["state"] != "sent" || !regexp.MustCompile(`"failed":\[\{"error":\{.*"responseCode":5\d\d.*\},"subscriptionId":"[0-9a-f]{24}","userChannelId":"c@example.com"\}\]`).Match(text) {
		t.Errorf("a refused broadcast: %v %s", outcome["state"], text)
	}
}

func TestNotifyBCFiltersOfBothSidesCount(t *testing.T) {
	s := startNotifyBC(t, "notification: {logSkippedBroadcastPushDispatches: true}\n", sink.Inject{})
	a, _ := s.confirmed("a", "a@example.com", `,"broadcastPushNotificationFilter":"contains_ci(title,'storm')","data":{"province":"BC"}`)
	b, _ := s.confirmed("a", "b@example.com", `,"broadcastPushNotificationFilter":"level > `+"`3`"+`","data":{"province":"BC"}`)
	c, _ := s.confirmed("a", "c@example.com", `,"data":{"province":"AB"}`)
	d, _ := s.confirmed("a", "d@example.com", "")
	s.answer(200, "POST", "/subscriptions", `{"serviceName":"a","userChannelId":"e@example.com","confirmationRequest":{"sendRequest":false}}`) // not confirmed
	for _, one := range []struct {
		more string
		want []string
	}{
		{`,"data":{"title":"A STORM","level":3}`, []string{a, c, d}},
		{`,"data":{"title":"Sun","level":4}`, []string{b, c, d}},
		{``, []string{a, b, c, d}},
		{`,"data":{"title":"storm","level":4},"broadcastPushNotificationSubscriptionFilter":"province == 'BC'"`, []string{a, b, d}},
		{`,"broadcastPushNotificationSubscriptionFilter":"unknown(province)"`, []string{d}},
	} {
		sent := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"}`+one.more+`}`)
		var got struct{ Candidates, Successful, Skipped []string }
		text, _ := json.Marshal(sent["dispatch"])
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.Successful)
		slices.Sort(one.want)
		if !slices.Equal(got.Successful, one.want) || len(got.Candidates) != 4 || len(got.Skipped) != 4-len(one.want) {
			t.Errorf("%s goes to %v, want %v; skipped %v", one.more, got.Successful, one.want, got.Skipped)
		}
	}
}

func TestNotifyBCAsynchronousBroadcastsCallBack(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	id, _ := s.confirmed("a", "a@example.com", "")
	called := make(chan map[string]any, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		record := map[string]any{}
		if json.Unmarshal(text, &record) == nil && r.Method == "POST" && r.Header.Get("Content-Type") == "application/json" && r.Header.Get("Authorization") == "" {
			called <- record
		}
	}))
	defer hook.Close()
	made := s.answer(200, "POST", "/notifications", fmt.Sprintf(`{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"},"asyncBroadcastPushNotification":%q}`, hook.URL))
	if made["state"] != "new" || made["dispatch"] != nil {
		t.Errorf("the answer is %v", made)
	}
	var final map[string]any
	select {
	case final = <-called:
	case <-time.After(patience):
		t.Fatal("the URL was not called")
	}
	if outcome, _ := final["dispatch"].(map[string]any); final["id"] != made["id"] || final["state"] != "sent" || fmt.Sprint(outcome["successful"]) != "["+id+"]" {
		t.Errorf("the URL got %v", final)
	}
	read := s.answer(200, "GET", "/notifications/"+made["id"].(string), "")
	if fmt.Sprint(read["dispatch"]) != fmt.Sprint(final["dispatch"]) || read["state"] != "sent" {
		t.Errorf("the notification reads as %v", read)
	}
	quiet := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"},"asyncBroadcastPushNotification":true}`)
	s.mails(2)
	s.eventually("the state sent", func() bool {
		return s.answer(200, "GET", "/notifications/"+quiet["id"].(string), "")["state"] == "sent"
	})
	if list := s.list("/notifications?filter=" + url.QueryEscape(`{"where":{"state":"sent"},"order":[["created","desc"]],"limit":1,"fields":["id","state"]}`)); len(list) != 1 || list[0]["id"] != quiet["id"] || len(list[0]) != 2 {
		t.Errorf("the list is %v", list)
	}
	if count := s.answer(200, "GET", "/notifications/count?where="+url.QueryEscape(`{"isBroadcast":true}`), ""); count["count"] != 2.0 {
		t.Errorf("the count is %v", count)
	}
}

// A notification that is not due when the server stops is sent once after the next start, to those who are subscribed then.
func TestNotifyBCSendsWhenDueAfterARestart(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	due := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339Nano)
	for _, more := range []string{`"isBroadcast":true`, `"userChannelId":"u@example.com","skipSubscriptionConfirmationCheck":true`} {
		made := s.answer(200, "POST", "/notifications", fmt.Sprintf(`{"serviceName":"a","channel":"email",%s,"message":{"subject":"s","textBody":"x"},"invalidBefore":%q}`, more, due))
		if made["state"] != "new" {
			t.Errorf("the answer is %v", made)
		}
	}
	s.confirmed("a", "a@example.com", "")
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	if n := s.sink.Stats().Accepted; n != 0 {
		t.Fatalf("%d mails were sent before they were due", n)
	}
	s.open()
	s.mails(2)
	for _, n := range s.list("/notifications") {
		s.eventually("the state sent", func() bool {
			return s.answer(200, "GET", "/notifications/"+n["id"].(string), "")["state"] == "sent"
		})
	}
	if n := s.sink.Stats().Accepted; n != 2 {
		t.Errorf("%d mails arrived, want 2", n)
	}
}

func TestNotifyBCInAppNotifications(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	create := func(more string) string {
		made := s.answer(200, "POST", "/notifications", `{"serviceName":"a","message":{"title":"hello"}`+more+`}`)
		if made["state"] != "new" || made["channel"] != "inApp" {
			t.Errorf("the answer is %v", made)
		}
		return made["id"].(string)
	}
	toAll, own, foreign := create(`,"isBroadcast":true`), create(`,"userId":"u"`), create(`,"userId":"v"`)
	create(`,"isBroadcast":true,"validTill":"2020-01-01T00:00:00Z"`)
	create(`,"isBroadcast":true,"invalidBefore":"2999-01-01T00:00:00Z"`)
	ids := func(user string) (list []string) {
		for _, n := range s.list("/notifications", by(user)...) {
			list = append(list, n["id"].(string)+" "+n["state"].(string))
			if n["createdBy"] != nil || n["isBroadcast"] == true && (n["readBy"] != nil || n["deletedBy"] != nil) {
				t.Errorf("a user sees %v", n)
			}
		}
		slices.Sort(list)
		return list
	}
	is := func(user string, want ...string) {
		t.Helper()
		slices.Sort(want)
		if got := ids(user); !slices.Equal(got, want) {
			t.Errorf("%s sees %v, want %v", user, got, want)
		}
	}
	is("u", toAll+" new", own+" new")
	is("v", toAll+" new", foreign+" new")
	if count := s.answer(200, "GET", "/notifications/count", "", by("u")...); count["count"] != 2.0 {
		t.Errorf("the count is %v", count)
	}
	s.answer(204, "PATCH", "/notifications/"+toAll, `{"state":"read"}`, by("u")...)
	s.answer(204, "PATCH", "/notifications/"+own, `{"state":"read"}`, by("u")...)
	is("u", toAll+" read", own+" read")
	is("v", toAll+" new", foreign+" new")
	s.answer(204, "DELETE", "/notifications/"+toAll, "", by("u")...)
	s.answer(204, "DELETE", "/notifications/"+own, "", by("u")...)
	is("u")
	is("v", toAll+" new", foreign+" new")
	s.answer(404, "PATCH", "/notifications/"+foreign, `{"state":"read"}`, by("u")...)
	s.answer(404, "PATCH", "/notifications/"+toAll, `{}`, by("u")...)
	s.answer(404, "GET", "/notifications/"+foreign, "", by("u")...)
	mail := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"textBody":"x"}}`)
	s.answer(403, "PATCH", "/notifications/"+mail["id"].(string), `{"state":"read"}`, by("u")...)
	admin := s.answer(200, "GET", "/notifications/"+toAll, "")
	if fmt.Sprintf("%v %v %v", admin["readBy"], admin["deletedBy"], admin["state"]) != "[u] [u] new" {
		t.Errorf("an administrator sees %v", admin)
	}
	s.answer(204, "PATCH", "/notifications/"+own, `{"state":"new","extra":2}`)
	if read := s.answer(200, "GET", "/notifications/"+own, ""); read["state"] != "new" || read["extra"] != 2.0 {
		t.Errorf("the changed notification is %v", read)
	}
}

// PUT sends a notification again only to those who have not got it.
func TestNotifyBCReplacesNotifications(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	s.confirmed("a", "a@example.com", "")
	later := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"},"invalidBefore":"2999-01-01T00:00:00Z"}`)
	s.answer(204, "PUT", "/notifications/"+later["id"].(string), `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"now","textBody":"x"},"state":"new"}`)
	if mail := s.mails(1)[0]; !strings.Contains(mail, "Subject: now") {
		t.Errorf("the mail is\n%s", mail)
	}
	s.answer(204, "PUT", "/notifications/"+later["id"].(string), `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"again","textBody":"x"},"state":"sending"}`)
	if n := s.sink.Stats().Accepted; n != 1 {
		t.Errorf("%d mails arrived, want 1", n)
	}
}

// Content of a broadcast reaches only the subscriptions of its channel, and a message for a user of the application is put
// into the mailbox of the user.
func TestNotifyBCChannels(t *testing.T) {
	s := startNotifyBC(t, "channels: {email: email, inApp: inbox}\n", sink.Inject{})
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  inbox: {driver: inbox, from: \"App <app@example.org>\"}\n")
	s.confirmed("a", "a@example.com", "")
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"a","channel":"inbox","to":"b@example.com"}`)
	sent := s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","isBroadcast":true,"message":{"subject":"s","textBody":"x"}}`)
	if outcome, _ := sent["dispatch"].(map[string]any); len(outcome["successful"].([]any)) != 1 {
		t.Errorf("the broadcast went to %v", outcome)
	}
	s.answer(200, "POST", "/notifications", `{"serviceName":"a","userId":"u@example.com","message":{"title":"For {name}","textBody":"Hello {name}"},"data":{"name":"Ann"}}`)
	s.eventually("the message in the mailbox", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/subscribers/"+s.subscriber("u@example.com")+"/deliveries", "", ""), `"state":"delivered"`)
	})
	if n := s.sink.Stats().Accepted; n != 1 {
		t.Errorf("%d mails arrived, want 1", n)
	}
}

// The export of a person has what the API keeps about the person and nothing about others, and an erasure removes all of it.
func TestNotifyBCExportsAndErasesPeople(t *testing.T) {
	s := startNotifyBC(t, "", sink.Inject{})
	s.confirmed("a", "gone@example.com", `,"userId":"gone@example.com"`)
	s.confirmed("a", "other@example.com", "")
	s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","userChannelId":"gone@example.com","message":{"subject":"secret","textBody":"x"}}`)
	s.answer(200, "POST", "/notifications", `{"serviceName":"a","channel":"email","userChannelId":"other@example.com","message":{"subject":"foreign","textBody":"x"}}`)
	all := s.answer(200, "POST", "/notifications", `{"serviceName":"a","isBroadcast":true,"message":{"title":"to all"}}`)
	seen := s.answer(200, "POST", "/notifications", `{"serviceName":"a","isBroadcast":true,"message":{"title":"also to all"}}`)
	for _, user := range []string{"gone@example.com", "other@example.com"} {
		s.answer(204, "PATCH", "/notifications/"+all["id"].(string), `{"state":"read"}`, by(user)...)
	}
	for _, user := range []string{"other@example.com", "gone@example.com"} {
		s.answer(204, "PATCH", "/notifications/"+seen["id"].(string), `{"state":"deleted"}`, by(user)...)
	}
	const old = "5f1d7b2e9c8a4b001234567b"
	s.imported("notification", `{"_id":{"$oid":"`+old+`"},"serviceName":"a","channel":"email","isBroadcast":true,"state":"sent","message":{"subject":"old"},"dispatch":{"successful":["1"],"failed":[`+
		`{"subscriptionId":"2","userChannelId":"Gone@example.com","error":"x"},{"subscriptionId":"3","userChannelId":"other@example.com","error":"y"}]},"created":{"$date":"2021-01-01T00:00:00Z"}}`)
	for _, address := range []string{"Gone@example.com", "other@example.com"} {
		s.answer(200, "POST", "/bounces", `{"channel":"email","userChannelId":"`+address+`","hardBounceCount":2,"bounceMessages":[{"date":"2026-01-01T00:00:00.000Z","message":"no such user"}]}`)
	}
	s.mails(2)
	id := s.subscriber("gone@example.com")
	exported := s.must(200, "GET", "/v1/subscribers/"+id+"/export", "", "")
	types := map[string]int{}
	for line := range strings.Lines(exported) {
		var one struct {
			Type                 string
			Notification, Bounce map[string]any
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if types[one.Type]++; (one.Type == "notification") != (one.Notification["id"] != nil) || (one.Type == "bounce") != (one.Bounce["hardBounceCount"] == 2.0) {
			t.Errorf("a line of the export is %s", line)
		}
	}
	if types["notification"] != 4 || types["bounce"] != 1 {
		t.Errorf("the export has %v", types)
	}
	for _, part := range []string{"secret", "to all", `"content":{"subject":"secret","text":"x"}`, `"readBy":["gone@example.com"]`, `"failed":[{"error":"x","subscriptionId":"2","userChannelId":"Gone@example.com"}]`, "no such user"} {
		if !strings.Contains(exported, part) {
			t.Errorf("the export has no %s:\n%s", part, exported)
		}
	}
	for _, part := range []string{"other@example.com", "foreign"} {
		if strings.Contains(exported, part) {
			t.Errorf("the export has %s:\n%s", part, exported)
		}
	}
	s.must(200, "POST", "/v1/subscribers/"+id+"/erase", "application/json", `{}`)
	left, _ := s.ask2("/notifications")
	bounced, _ := s.ask2("/bounces")
	for _, part := range []string{"secret", "gone@example.com", "Gone@example.com"} {
		if strings.Contains(left+bounced, part) {
			t.Errorf("after the erasure, %s is left:\n%s\n%s", part, left, bounced)
		}
	}
	if list := s.list("/notifications"); len(list) != 4 {
		t.Errorf("left are %v", list)
	}
	for _, part := range []string{"foreign", `"readBy":["other@example.com"]`, `"failed":[{"error":"y","subscriptionId":"3","userChannelId":"other@example.com"}],"successful":["1"]`} {
		if !strings.Contains(left, part) {
			t.Errorf("after the erasure, %s is missing:\n%s", part, left)
		}
	}
	if list := s.list("/bounces"); len(list) != 1 || list[0]["userChannelId"] != "other@example.com" {
		t.Errorf("left are the bounces %v", list)
	}
}

// subscriber returns the id of the subscriber with an address.
func (s notifyBC) subscriber(address string) string {
	s.t.Helper()
	var found struct{ Subscribers []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/subscribers?address="+address, "", "")), &found); err != nil || len(found.Subscribers) != 1 {
		s.t.Fatalf("%s has no subscriber: %v %+v", address, err, found)
	}
	return found.Subscribers[0].ID
}
