package e2e

import (
	"html"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

// titled are the settings of a newsroom whose rules and channels have titles.
const titled = `service: news
title: The Daily
pages: {texts: {de: {signup_button: Abonnieren}, cy: {save: Cadw}, ja: {save: 保存}}}
channels:
  night-mail-2: {driver: file, path: %q, title: "Mail <at night>", from: "News <news@example.org>"}
topics:
  storm-alerts:
    title: Storms & floods
    template: storm
    digest: {template: storms}
    signup: true
    rules:
      - {name: lvl-v2, title: "Storms above <a level>", description: "Only the strong ones.", when: "event.level >= sub.min_level", params: {min_level: number, sms_too: boolean}}
      - {name: near-me, when: "event.place in sub.places", params: {places: strings}}
  bare-topic_7: {template: storm}
templates:
  storm: {subject: "{{ event.title }}", text: "{{ event.title }} {{ preferences_url }} {{ unsubscribe_url }}"}
  storms: {subject: "{{ count }}", text: "{% for item in items %}{{ item.event.title }} {% endfor %}"}
`

// internal is what no page and no mail for recipients may show.
var internal = []string{"sub.min_level", "event.level", "lvl-v2", "min_level", "bare-topic_7", "storm-alerts", "secret_tag"}

func titledNewsroom(t *testing.T) (*server, *relay) {
	t.Helper()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, strings.Replace(titled, "%q", `"`+filepath.Join(s.dir, "night")+`"`, 1))
	return s, r
}

// seen is what a browser shows of a page: no tags, no values of fields.
func seen(page string) string {
	var b strings.Builder
	_, body, _ := strings.Cut(page, "</style>")
	body, _, _ = strings.Cut(body, "<script>")
	for part := range strings.SplitSeq(body, "<") {
		if _, text, ok := strings.Cut(part, ">"); ok {
			b.WriteString(text + "\n")
		}
	}
	return html.UnescapeString(b.String())
}

func hidesInternals(t *testing.T, what, text string) {
	t.Helper()
	for _, name := range internal {
		if strings.Contains(text, name) {
			t.Errorf("%s shows %s: %s", what, name, text)
		}
	}
}

func shows(t *testing.T, what, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%s does not show %q: %s", what, text, page)
		}
	}
}

func TestPagesShowTitlesAndNoConditions(t *testing.T) {
	t.Parallel()
	s, r := titledNewsroom(t)
	people := s.http.with("")
	s.http.subscribe(`{"id":"rule","topic":"storm-alerts","channel":"email","to":"ada@example.org","rule":"lvl-v2","params":{"min_level":1500000,"sms_too":true}}`)
	s.http.subscribe(`{"id":"filter","topic":"storm-alerts","channel":"email","to":"ada@example.org","filter":"event.level > 2 || event.title == 'secret_tag'"}`)
	s.http.subscribe(`{"id":"places","topic":"storm-alerts","channel":"email","to":"ada@example.org","rule":"near-me","params":{"places":["Ulm","Bern"]}}`)
	s.http.subscribe(`{"id":"bare","topic":"bare-topic_7","channel":"email","to":"ada@example.org"}`)
	s.http.must(202, "POST", "/v1/topics/storm-alerts/events", plain, `{"title":"x","level":5,"place":"Ulm"}`)
	mail := r.awaited(t, "ada@example.org", 1)[0]

	preferences := people.must(200, "GET", linkOf(t, mail, "p"), "", "")
	leave := people.must(200, "GET", linkOf(t, mail, "u"), "", "")
	for what, page := range map[string]string{"the preferences page": preferences, "the unsubscribe page": leave} {
		hidesInternals(t, what, seen(page))
		shows(t, what, seen(page), "Storms above <a level>", "Storms & floods", "Min level: 1500000; Sms too: Yes", "Places: Ulm, Bern", "Bare topic 7")
		if strings.Contains(page, "<a level>") {
			t.Errorf("%s is not escaped: %s", what, page)
		}
	}
	shows(t, "the preferences page", seen(preferences), "Only the strong ones.")

	left := people.must(200, "POST", linkOf(t, mail, "u"), form, "page=1&all=1")
	hidesInternals(t, "the answer", seen(left))
	shows(t, "the answer", seen(left), "Storms above <a level>")
}

func TestPagesShowNoConditionWithoutTitles(t *testing.T) {
	t.Parallel()
	s, r := newsroom(t, sink.Config{}, "")
	s.http.must(200, "POST", "/v1/apply", yaml, opened)
	people := s.http.with("")
	s.http.subscribe(`{"id":"filter","topic":"storm","channel":"email","to":"ada@example.org","filter":"event.level > 2"}`)
	s.http.subscribe(`{"id":"rule","topic":"storm","channel":"email","to":"ada@example.org","rule":"level","params":{"from":3}}`)
	s.http.must(202, "POST", "/v1/topics/storm/events", plain, `{"title":"x","level":5}`)
	mail := r.awaited(t, "ada@example.org", 1)[0]
	for _, kind := range []string{"p", "u"} {
		page := seen(people.must(200, "GET", linkOf(t, mail, kind), "", ""))
		hidesInternals(t, "page "+kind, page)
		shows(t, "page "+kind, page, "Storms & floods", "From: 3")
	}
}

func TestSignUpShowsTheTitleOfTheRule(t *testing.T) {
	t.Parallel()
	s, r := titledNewsroom(t)
	people := s.http.with("")
	page := people.must(200, "GET", "/s/news/storm-alerts", "", "")
	hidesInternals(t, "the form", seen(page))
	shows(t, "the form", seen(page), "Storms above <a level>", "Only the strong ones.", "Near me", "Email", "Mail <at night>")

	token := on(t, page, `name="token" value="([^"]+)"`)
	fields := url.Values{"token": {token}, "proof": {proof(token)}, "to": {"ada@example.org"}, "rule": {"lvl-v2"}, "p-lvl-v2-min_level": {"3"}, "channel": {"email"}, "locale": {"cy"}, "zone": {"Asia/Tokyo"}}
	people.must(200, "POST", "/s/news/storm-alerts", form, fields.Encode())
	mail := r.awaited(t, "ada@example.org", 1)[0]
	hidesInternals(t, "the mail", mail)
	shows(t, "the mail", mail, "Storms above <a level>")
	confirm := people.must(200, "GET", linkOf(t, mail, "c"), "", "")
	hidesInternals(t, "the page to confirm", seen(confirm))
	shows(t, "the page to confirm", seen(confirm), "Storms above <a level>", "Min level: 3; Sms too: No")
	done := people.must(200, "POST", linkOf(t, mail, "c"), form, "")
	hidesInternals(t, "the page after it", seen(done))
	shows(t, "the page after it", seen(done), "Storms above <a level>")
	shows(t, "the subscriber", s.http.must(200, "GET", "/v1/subscribers/"+s.personOf("ada@example.org"), "", ""), `"locale":"cy"`, `"time_zone":"Asia/Tokyo"`)
}

func TestPreferencesNameLanguagesZonesAndChannels(t *testing.T) {
	t.Parallel()
	s, r := titledNewsroom(t)
	people := s.http.with("")
	s.http.subscribe(`{"id":"mine","topic":"storm-alerts","channel":"email","to":"ada@example.org","locale":"cy","time_zone":"Europe/Vienna"}`)
	s.http.must(202, "POST", "/v1/topics/storm-alerts/events", plain, `{"title":"x","level":5,"place":"Ulm"}`)
	link := linkOf(t, r.awaited(t, "ada@example.org", 1)[0], "p")
	page := people.must(200, "GET", link, "", "")
	shows(t, "the page", page, `<option value="cy" lang="cy" selected>Cymraeg</option>`, `<option value="de" lang="de">Deutsch</option>`, `<option value="ja" lang="ja">日本語</option>`,
		`<option value="en" lang="en">English</option>`, `<option value="Europe/Vienna" selected>Vienna</option>`, `<option value="America/Argentina/Buenos_Aires">Argentina, Buenos Aires</option>`,
		`<option value="email" selected>Email</option>`, `<option value="night-mail-2">Mail &lt;at night&gt;</option>`)
	if n := strings.Count(page, " selected"); n != 4 {
		t.Errorf("%d options are selected: %s", n, page)
	}
	if strings.Contains(page, "<script") {
		t.Errorf("the page needs a script: %s", page)
	}
	people.must(200, "POST", link, form, url.Values{"do": {"save"}, "locale": {"ja"}, "zone": {"Asia/Tokyo"}}.Encode())
	shows(t, "the page that is saved", people.must(200, "GET", link, "", ""), `<option value="ja" lang="ja" selected>`, `<option value="Asia/Tokyo" selected>Tokyo</option>`)

	// Somebody of whom no language is known does not get one by saving.
	s.http.must(200, "PATCH", "/v1/subscribers/"+s.personOf("ada@example.org"), "application/merge-patch+json", `{"locale":null}`)
	shows(t, "the page", people.must(200, "GET", link, "", ""), `<option value="" selected>Not set</option>`)

	// A time zone under an old name stays what it is.
	s.http.must(200, "PATCH", "/v1/subscribers/"+s.personOf("ada@example.org"), "application/merge-patch+json", `{"time_zone":"US/Eastern"}`)
	shows(t, "the page", people.must(200, "GET", link, "", ""), `<option value="US/Eastern" selected>`)
}

func TestTitlesOfRulesAreKept(t *testing.T) {
	t.Parallel()
	s, _ := titledNewsroom(t)
	const want = `"title":"Storms above <a level>","description":"Only the strong ones."`
	is := func(c *caller) string {
		return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(c.must(200, "GET", "/v1/topics/storm-alerts/rules/lvl-v2", "", ""))
	}
	shows(t, "the rule", is(s.http), want)
	s.http.must(200, "PUT", "/v1/topics/storm-alerts", plain, s.http.must(200, "GET", "/v1/topics/storm-alerts", "", ""))
	shows(t, "the rule that is put as it was read", is(s.http), want)
	shows(t, "the list", s.mustRun("", "rule", "list", "storm-alerts"), "TITLE", "Storms above <a level>")
	for name, c := range map[string]struct{ field, value string }{
		"an empty title":            {"title", ``},
		"101 characters":            {"title", strings.Repeat("ä", 101)},
		"a control character":       {"title", `a\u0007b`},
		"a line break":              {"title", `a\nb`},
		"a description of 501":      {"description", strings.Repeat("ä", 501)},
		"an empty description":      {"description", ``},
		"an override of directions": {"title", `a\u202eb`},
		"spaces alone":              {"title", `  `},
	} {
		answer := s.http.must(422, "PUT", "/v1/topics/storm-alerts/rules/near-me", plain, `{"when":"event.place in sub.places","params":{"places":"strings"},"`+c.field+`":"`+c.value+`"}`)
		shows(t, name, answer, `/`+c.field)
	}
	s.http.must(200, "PUT", "/v1/topics/storm-alerts/rules/near-me", plain, `{"when":"event.place in sub.places","params":{"places":"strings"},"title":"`+strings.Repeat("ä", 100)+`","description":"`+strings.Repeat("ä", 500)+`"}`)
	s.http.must(422, "POST", "/v1/apply", yaml, "service: news\nchannels:\n  email: {driver: smtp, relay: \"127.0.0.1:25\", from: \"a@example.org\", title: \"\"}\n")

	file := filepath.Join(t.TempDir(), "titles.backup")
	s.mustRun("", "backup", file)
	o := restoreElsewhere(t, file)
	shows(t, "the rule that is restored", is(o.http), want)
	if names := strings.Fields(o.mustRun("", "channel", "list")); !slices.Contains(names, "night-mail-2") {
		t.Errorf("channels are %v", names)
	}
	shows(t, "the channel that is restored", o.http.must(200, "GET", "/v1/channels/night-mail-2", "", ""), "at night")
}
