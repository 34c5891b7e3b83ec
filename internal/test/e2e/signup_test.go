package e2e

import (
	"crypto/sha256"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// opened are the settings of a newsroom that lets people sign up to storms.
const opened = `service: news
title: The Daily
pages: {color: "#7a1fa2", links: [{title: Imprint, url: "https://news.example.org/imprint"}], texts: {de: {confirm_title: "Bitte bestätigen: {0}"}}}
topics:
  storm:
    title: Storms & floods
    template: storm
    digest: {template: storms}
    signup: {terms: "https://news.example.org/terms/3"}
    rules:
      - {name: level, when: "event.level >= sub.from", params: {from: number}}
templates:
  storm: {subject: "{{ event.title }}", text: "{{ event.title }} {{ preferences_url }} {{ unsubscribe_url }}"}
  storms: {subject: "{{ count }}", text: "{% for item in items %}{{ item.event.title }} {% endfor %}"}
`

// proof looks for what a browser looks for.
func proof(token string) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s.%d", token, n))
		if sum[0] == 0 && sum[1] < 2 {
			return fmt.Sprint(n)
		}
	}
}

// signUp fills in the form as somebody with a browser does.
func signUp(t *testing.T, people *caller, to string, more url.Values) string {
	t.Helper()
	page := people.must(200, "GET", "/s/news/storm", "", "")
	token := on(t, page, `name="token" value="([^"]+)"`)
	fields := url.Values{"token": {token}, "proof": {proof(token)}, "to": {to}, "rule": {"level"}, "p-level-from": {"3"}, "agree": {"1"}}
	for name, values := range more {
		fields[name] = values
	}
	return people.must(200, "POST", "/s/news/storm", form, fields.Encode(), "Accept-Language", "de-AT,de;q=0.9")
}

type consents struct {
	Consents []struct{ Subscription, Address, How, Topic, Terms, Source string }
}

func (s *server) personOf(address string) string {
	s.t.Helper()
	found := into[struct{ Subscribers []struct{ ID string } }](s.t, s.http.must(200, "GET", "/v1/subscribers?address="+url.QueryEscape(address), "", ""))
	if len(found.Subscribers) != 1 {
		s.t.Fatalf("%s is %d people", address, len(found.Subscribers))
	}
	return found.Subscribers[0].ID
}

func (r *relay) awaited(t *testing.T, to string, n int) []string {
	t.Helper()
	eventually(t, fmt.Sprintf("%d mails to %s", n, to), func() bool { return len(r.of(to)) >= n })
	return r.of(to)
}

// A sign-up is nothing before it is confirmed, and nobody but the owner of the address
// learns anything.
func TestASignUpIsNothingBeforeItIsConfirmed(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	told := signUp(t, people, "ada@example.org", nil)
	link := linkOf(t, r.awaited(t, "ada@example.org", 1)[0], "c")
	if strings.Contains(link, "ada") {
		t.Errorf("the link names the address: %s", link)
	}
	for range 3 { // a program that looks at mails opens every link
		if page := people.must(200, "GET", link, "", ""); !strings.Contains(page, "Bitte bestätigen: Storms &amp; floods") || !strings.Contains(page, "terms/3") {
			t.Fatalf("the page is %s", page)
		}
	}
	if list := s.http.must(200, "GET", "/v1/subscriptions?topic=storm", "", ""); strings.Contains(list, "ada@") {
		t.Fatalf("looking subscribed: %s", list)
	}
	for range 2 {
		if page := people.must(200, "POST", link, form, ""); !strings.Contains(page, "You are subscribed") {
			t.Fatalf("the page is %s", page)
		}
	}
	agreed := into[consents](t, s.http.must(200, "GET", "/v1/subscribers/"+s.personOf("ada@example.org")+"/consents", "", ""))
	if len(agreed.Consents) != 1 || agreed.Consents[0].How != "confirmed" || agreed.Consents[0].Terms != "https://news.example.org/terms/3" ||
		agreed.Consents[0].Source != "page /s/news/storm" || agreed.Consents[0].Address != "ada@example.org" {
		t.Errorf("consents are %+v", agreed)
	}
	if export := s.http.must(200, "GET", "/v1/subscribers/"+s.personOf("ada@example.org")+"/export", "", ""); !strings.Contains(export, `"type":"consent"`) {
		t.Errorf("no consent in %s", export)
	}

	// Again: the page says the same, the mail another thing.
	if again := signUp(t, people, "ada@example.org", nil); clean(again) != clean(told) {
		t.Errorf("who asks again is told\n%s\nand was told\n%s", again, told)
	}
	known := r.awaited(t, "ada@example.org", 2)[1]
	if !strings.Contains(known, "already subscribed") {
		t.Errorf("the mail is %s", known)
	}
	people.must(200, "GET", linkOf(t, known, "p"), "", "")

	// The old link does not restore a subscription that has ended since.
	s.http.must(202, "POST", "/v1/topics/storm/events", plain, `{"title":"x","level":5}`)
	people.must(200, "POST", linkOf(t, r.awaited(t, "ada@example.org", 3)[2], "u"), form, "List-Unsubscribe=One-Click")
	if page := people.must(200, "POST", link, form, ""); !strings.Contains(page, "already been used") {
		t.Errorf("the page is %s", page)
	}
}

// clean takes the times and tokens off a page.
func clean(page string) string { return html.UnescapeString(page) }

// A form sends no mail if the hidden field is filled in, if it is sent twice or if it is sent
// faster than a person could.
func TestAFormKeepsRobotsOut(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	people.must(404, "GET", "/s/news/story", "", "") // says nothing of signing up
	people.must(404, "GET", "/s/news/none", "", "")

	signUp(t, people, "trap@example.org", url.Values{"website": {"https://spam.example"}})
	for name, values := range map[string]url.Values{
		"no proof, at once": {"proof": {""}}, "another's proof": {"proof": {"1"}}, "a token that is none": {"token": {"AAAA"}}, "no consent": {"agree": {""}},
		"no number": {"p-level-from": {"many"}}, "another rule": {"rule": {"none"}},
	} {
		if page := signUp(t, people, "robot@example.org", values); !strings.Contains(page, `role="alert"`) {
			t.Errorf("%s: %s", name, page)
		}
	}
	if page := signUp(t, people, "no address@", nil); !strings.Contains(page, "This is not a valid email address") {
		t.Errorf("the page is %s", page)
	}
	page := people.must(200, "GET", "/s/news/storm", "", "")
	token := on(t, page, `name="token" value="([^"]+)"`)
	fields := url.Values{"token": {token}, "proof": {proof(token)}, "to": {"eve@example.org"}, "p-level-from": {"3"}, "agree": {"1"}}.Encode()
	people.must(200, "POST", "/s/news/storm", form, fields)
	if page := people.must(200, "POST", "/s/news/storm", form, fields); !strings.Contains(page, "could not accept the form") {
		t.Errorf("the same form again: %s", page)
	}
	r.awaited(t, "eve@example.org", 1)
	for range 4 { // an address gets three an hour, and who asks is told the same
		if page := signUp(t, people, "eve@example.org", nil); !strings.Contains(page, "Check your email") {
			t.Errorf("the page is %s", page)
		}
	}
	signUp(t, people, "last@example.org", nil)
	r.awaited(t, "last@example.org", 1)
	for _, nobody := range []string{"trap@example.org", "robot@example.org"} {
		if mails := r.of(nobody); len(mails) != 0 {
			t.Errorf("%s got %v", nobody, mails)
		}
	}
	if n := len(r.of("eve@example.org")); n > 3 {
		t.Errorf("%d mails to one address", n)
	}
}

// The preferences page changes the chosen settings and nothing else.
func TestPreferencesAreChangedByTheirPage(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	s.http.subscribe(`{"id":"mine","topic":"storm","channel":"email","to":"ada@example.org","rule":"level","params":{"from":3},"data":{"k":1},"consent":{"terms":"3","source":"shop"}}`)
	s.http.subscribe(`{"id":"plain","topic":"story","channel":"email","to":"ada@example.org"}`)
	s.http.must(202, "POST", "/v1/topics/storm/events", plain, `{"title":"x","level":5}`)
	link := linkOf(t, r.awaited(t, "ada@example.org", 1)[0], "p")
	page := people.must(200, "GET", link, "", "")
	mine := on(t, page, `(?s)Storms &amp; floods</legend>\s*<input type="hidden" name="s" value="(sub-[0-9a-z]+)"`)
	other := on(t, page, `(?s)<legend>Story</legend>\s*<input type="hidden" name="s" value="(sub-[0-9a-z]+)"`)
	if strings.Contains(page, "ada@") {
		t.Errorf("the page names the address: %s", page)
	}
	saved := people.must(200, "POST", link, form, url.Values{"do": {"save"}, "s": {mine, other}, "keep-" + mine: {"1"}, "keep-" + other: {"1"}, "cadence-" + mine: {"daily 08:00"}, "locale": {"de"}, "zone": {"Europe/Vienna"}}.Encode())
	if !strings.Contains(saved, "Your changes are saved") {
		t.Fatalf("the page is %s", saved)
	}
	is := s.http.must(200, "GET", "/v1/subscriptions/mine", "", "")
	if !strings.Contains(is, `"cadence":"daily 08:00"`) || !strings.Contains(is, `"k":1`) || !strings.Contains(is, `"from":3`) || states(s.http, "mine", "plain") != "active active " {
		t.Errorf("it is %s", is)
	}
	if who := s.http.must(200, "GET", "/v1/subscribers/"+s.personOf("ada@example.org"), "", ""); !strings.Contains(who, "Europe/Vienna") || !strings.Contains(who, `"locale":"de"`) {
		t.Errorf("they are %s", who)
	}
	if page := people.must(200, "POST", link, form, url.Values{"do": {"save"}, "zone": {"Nowhere/Else"}}.Encode()); !strings.Contains(page, `role="alert"`) {
		t.Errorf("the page is %s", page)
	}
	left := people.must(200, "POST", link, form, url.Values{"do": {"save"}, "s": {other}, "zone": {"Europe/Vienna"}}.Encode())
	if states(s.http, "mine", "plain") != "active ended " {
		t.Errorf("after leaving one: %s", states(s.http, "mine", "plain"))
	}
	people.must(200, "POST", on(t, left, `action="\.\.(/r/[^"]+)"`), form, "")
	if states(s.http, "mine", "plain") != "active active " {
		t.Errorf("after taking it back: %s", states(s.http, "mine", "plain"))
	}

	// Another address counts when it has confirmed, and the old one hears of it.
	people.must(200, "POST", link, form, url.Values{"do": {"move"}, "to": {"ada@new.example"}}.Encode())
	move := linkOf(t, r.awaited(t, "ada@new.example", 1)[0], "a")
	people.must(200, "GET", move, "", "")
	if is := s.http.must(200, "GET", "/v1/subscriptions/mine", "", ""); !strings.Contains(is, "ada@example.org") {
		t.Errorf("moved before it was confirmed: %s", is)
	}
	for range 2 {
		people.must(200, "POST", move, form, "")
	}
	if is := s.http.must(200, "GET", "/v1/subscriptions/mine", "", ""); !strings.Contains(is, "ada@new.example") || !strings.Contains(is, `"daily 08:00"`) || !strings.Contains(is, `"state":"active"`) {
		t.Errorf("it is %s", is)
	}
	if mails := r.awaited(t, "ada@example.org", 2); !strings.Contains(mails[1], "Your address has changed") {
		t.Errorf("the old address got %s", mails[1])
	}
	agreed := map[string]int{}
	for _, c := range into[consents](t, s.http.must(200, "GET", "/v1/subscribers/"+s.personOf("ada@new.example")+"/consents", "", "")).Consents {
		agreed[c.How+" "+c.Address+" "+c.Source]++
	}
	if len(agreed) != 2 || agreed["vouched ada@example.org shop"] != 1 || agreed["confirmed ada@new.example the address was changed"] != 2 {
		t.Errorf("agreed to is %v", agreed)
	}

	// The old mailbox may be somebody else's by now: its link leads nowhere, and a new one goes to the new address.
	old := people.must(200, "GET", link, "", "")
	if strings.Contains(old, "Storms") || !strings.Contains(old, "has expired") {
		t.Errorf("the old link shows %s", old)
	}
	leave := linkOf(t, r.of("ada@example.org")[0], "u")
	if page := people.must(200, "GET", leave, "", ""); strings.Contains(page, "Storms") || strings.Contains(page, "story") {
		t.Errorf("the old link to unsubscribe shows %s", page)
	}
	people.must(200, "POST", leave, form, "page=1&all=1")
	people.must(200, "POST", leave, form, "List-Unsubscribe=One-Click")
	if states(s.http, "mine", "plain") != "active active " {
		t.Errorf("the old link to unsubscribe has ended what goes to the new address: %s", states(s.http, "mine", "plain"))
	}
	people.must(200, "POST", link, form, url.Values{"do": {"move"}, "to": {"eve@example.org"}}.Encode())
	renewed := linkOf(t, r.awaited(t, "ada@new.example", 2)[1], "p")
	if page := people.must(200, "GET", renewed, "", ""); !strings.Contains(page, "Storms") {
		t.Errorf("the new link shows %s", page)
	}
	if mails := r.of("eve@example.org"); len(mails) != 0 {
		t.Errorf("somebody else got %v", mails)
	}
}

// A person who unsubscribed from everything and signs up again gets only that subscription. A
// form lifts no other suppression.
func TestASignUpLiftsNothingButItsOwnersWish(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	s.http.subscribe(`{"id":"before","topic":"story","channel":"email","to":"ada@example.org"}`)
	for to, reason := range map[string]string{"ada": "unsubscribed", "bounced": "hard_bounce", "angry": "complaint"} {
		s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"`+to+`@example.org","reason":"`+reason+`"}`)
	}
	s.http.must(200, "POST", "/v1/suppressions", plain, `{"address":"eve@example.org","reason":"unsubscribed","all_services":true}`)
	told := map[string]bool{}
	for _, to := range []string{"bounced", "angry", "eve", "ada"} {
		told[strings.ReplaceAll(signUp(t, people, to+"@example.org", nil), to, "")] = true
	}
	if len(told) != 1 {
		t.Errorf("who asks sees a difference: %v", told)
	}
	link := linkOf(t, r.awaited(t, "ada@example.org", 1)[0], "c")
	if list := s.http.must(200, "GET", "/v1/suppressions?address=ada@example.org", "", ""); !strings.Contains(list, "unsubscribed") {
		t.Errorf("to ask has lifted it: %s", list)
	}
	for range 2 {
		if page := people.must(200, "POST", link, form, ""); !strings.Contains(page, "You are subscribed") {
			t.Fatalf("the page is %s", page)
		}
	}
	s.http.must(404, "GET", "/v1/suppressions?address=ada@example.org", "", "")
	if states(s.http, "before") != "ended " {
		t.Errorf("what was there before is %s", states(s.http, "before"))
	}
	s.http.must(202, "POST", "/v1/topics/storm/events", plain, `{"title":"storm","level":5}`)
	r.awaited(t, "ada@example.org", 2)
	for _, to := range []string{"bounced", "angry", "eve"} {
		if mails := r.of(to + "@example.org"); len(mails) != 0 {
			t.Errorf("%s got %v", to, mails)
		}
	}
}

// A form on another site begins a sign-up that goes on here, and many spellings of an
// address are one mailbox.
func TestAFormOfAnotherSiteBeginsASignUp(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	page := people.must(200, "POST", "/s/news/storm", form, url.Values{"to": {"ada@example.org"}, "p-level-from": {"4"}}.Encode(), "Origin", "https://city.example", "Accept-Language", "xx-nonsense-9")
	if strings.Contains(page, `role="alert"`) || !strings.Contains(page, `value="ada@example.org"`) || !strings.Contains(page, `value="4"`) || !strings.Contains(page, `name="token"`) {
		t.Errorf("the page is %s", page)
	}
	for _, to := range []string{"ada+1@example.org", "ADA+2@EXAMPLE.org", "ada+3@example.org", "Ada@example.org", "ada+4@example.org"} {
		signUp(t, people, to, nil)
	}
	signUp(t, people, "last@example.org", nil)
	r.awaited(t, "last@example.org", 1)
	n := 0
	for _, to := range []string{"ada+1@example.org", "ADA+2@example.org", "ada+3@example.org", "Ada@example.org", "ada+4@example.org"} {
		n += len(r.of(to))
	}
	if n > 3 {
		t.Errorf("%d mails to one mailbox", n)
	}
}
