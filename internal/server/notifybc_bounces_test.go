package server_test

import (
	"fmt"
	"net/smtp"
	"strings"
	"testing"
)

// Mail of a broadcast comes back to its return address. It is counted once for each mail, and above the threshold, all subscriptions of the
// address end, in all services.
func TestNotifyBCEndsSubscriptionsThatBounce(t *testing.T) {
	s, to := startNotifyBCWithInbound(t, "email: {bounce: {unsubThreshold: 2}}\n", "bounces: {unknown: {never: true}, hard: {never: true}}\n")
	weather, code := s.confirmed("weather", "Ann@example.org", "")
	roads, _ := s.confirmed("myRoads", "ann@example.org", "")
	other, _ := s.confirmed("weather", "bob@example.org", "")
	states := func(want ...string) {
		t.Helper()
		if got := []string{s.state(weather), s.state(roads), s.state(other)}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("the subscriptions are %v, want %v", got, want)
		}
	}
	mails := 0
	broadcast := func(want int) (returnTo string) {
		t.Helper()
		sent := s.answer(200, "POST", "/notifications", `{"serviceName":"weather","channel":"email","isBroadcast":true,"message":{"subject":"Storm","textBody":"Wind"}}`)
		outcome, _ := sent["dispatch"].(map[string]any)
		if successful, _ := outcome["successful"].([]any); len(successful) != want {
			t.Fatalf("the broadcast is %v", sent)
		}
		for _, m := range s.sink.Messages()[mails:] {
			if mails++; m.To[0] == "Ann@example.org" || m.To[0] == "ann@example.org" {
				returnTo = m.From
			}
		}
		return returnTo
	}
	bounced := func() map[string]any {
		t.Helper()
		list := s.list("/bounces")
		if len(list) != 1 || list[0]["userChannelId"] != "Ann@example.org" && list[0]["userChannelId"] != "ann@example.org" || list[0]["channel"] != "email" {
			t.Fatalf("bounces %v", list)
		}
		return list[0]
	}
	for n := 1; n <= 3; n++ {
		returnTo := broadcast(2)
		if !strings.HasSuffix(returnTo, "@returns.example.org") {
			t.Fatalf("the mail comes back to %q", returnTo)
		}
		for range 2 { // mail servers repeat reports
			if err := smtp.SendMail(to, nil, "", []string{returnTo}, report("ann@example.org", "5.1.1", fmt.Sprintf("550 5.1.1 User unknown %d", n))); err != nil {
				t.Fatal(err)
			}
		}
		is := bounced()
		messages, _ := is["bounceMessages"].([]any)
		if is["hardBounceCount"] != float64(n) || len(messages) != n || !strings.Contains(fmt.Sprint(messages[0]), fmt.Sprintf("User unknown %d", n)) {
			t.Errorf("after bounce %d, the record is %v", n, is)
		}
		if n < 3 {
			states("confirmed", "confirmed", "confirmed")
		}
	}
	states("deleted", "deleted", "confirmed")
	if is := bounced(); is["state"] != "deleted" {
		t.Errorf("the record is %v", is)
	}
	if reason := s.suppressed("ann@example.org"); reason != "" {
		t.Errorf("the service never suppresses, but the address is suppressed: %s", reason)
	}
	if got := broadcast(1); got != "" {
		t.Errorf("a mail still goes to the address: %s", got)
	}
	s.answer(200, "GET", "/subscriptions/"+weather+"/unsubscribe/undo?unsubscriptionCode="+code, "", anonymous...)
	states("confirmed", "deleted", "confirmed")
	broadcast(2)
}

// Mail that NotifyBC sent before the import comes back to an address with the id and the code of a subscription. It counts like our own.
func TestNotifyBCCountsBouncesOfOldMail(t *testing.T) {
	s, to := startNotifyBCWithInbound(t, "email: {bounce: {unsubThreshold: 1}}\n", "bounces: {unknown: {after: 2}}\n")
	s.imported("subscription", exportedSubscription(confirmedID, "11111", "confirmed", "ann@example.com"), exportedSubscription(mailedID, "44444", "confirmed", "ann@example.com"))
	back := func(said string) {
		t.Helper()
		if err := smtp.SendMail(to, nil, "", []string{"bn-" + mailedID + "-44444@returns.example.org"}, report("ann@example.com", "5.1.1", said)); err != nil {
			t.Fatal(err)
		}
	}
	back("550 5.1.1 User unknown, first")
	back("550 5.1.1 User unknown, first") // is repeated
	if is := s.list("/bounces"); len(is) != 1 || is[0]["hardBounceCount"] != 1.0 || is[0]["state"] != "active" {
		t.Errorf("bounces %v", is)
	}
	if s.state(confirmedID) != "confirmed" || s.suppressed("ann@example.com") != "" {
		t.Error("one bounce has consequences already")
	}
	back("550 5.1.1 User unknown, second")
	if is := s.list("/bounces"); len(is) != 1 || is[0]["hardBounceCount"] != 2.0 || is[0]["state"] != "deleted" {
		t.Errorf("bounces %v", is)
	}
	if a, b := s.state(confirmedID), s.state(mailedID); a != "deleted" || b != "deleted" {
		t.Errorf("the subscriptions are %s and %s", a, b)
	}
	if reason := s.suppressed("ann@example.com"); reason != "hard_bounce" {
		t.Errorf("the address is suppressed for %q", reason)
	}
}
