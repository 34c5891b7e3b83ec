package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// digests applies a topic whose events are sent in digests.
func (s *testServer) digests() {
	s.t.Helper()
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relay: %q, from: "News <news@example.org>", rate: unlimited}
topics:
  story:
    key: title
    template: story
    digest: {template: stories, max: 4}
templates:
  story: {subject: "{{ event.title }}", text: "At once <{{ event.title }}>"}
  stories: {subject: "{{ count }} stories", text: "Together{%% for item in items %%} <{{ item.event.title }}>{%% endfor %%} and {{ more }} more"}
`, s.addr))
}

func (s *testServer) wants(status int, who, cadence string) {
	s.t.Helper()
	s.must(status, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"topic":"story","channel":"email","to":"%s@example.org","cadence":%q}`, who, cadence))
}

func (s *testServer) tell(titles ...string) {
	s.t.Helper()
	before := s.matched()
	for _, title := range titles {
		s.must(202, "POST", "/v1/topics/story/events", "application/json", fmt.Sprintf(`{"title":%q}`, title))
	}
	s.eventually("the match", func() bool { return s.matched() >= before+len(titles) })
}

// told returns the texts of the emails to an address.
func (s *testServer) told(who string) (texts []string) {
	for _, m := range s.sink.Messages() {
		if body := string(m.Body); strings.Contains(body, who+"@example.org") {
			texts = append(texts, strings.TrimSpace(body[strings.Index(body, "\r\n\r\n"):]))
		}
	}
	return texts
}

// far is a cadence that is not due while a test runs.
func far() string {
	return "weekly " + strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Weekday().String()) + " 08:00"
}

func TestWindowBecomesOneDigest(t *testing.T) {
	s := start(t, sink.Inject{})
	s.digests()
	s.wants(201, "ada", "window 1s")
	s.wants(201, "bob", "immediate")
	s.tell("one", "two", "three")
	times := func(title string) int { return strings.Count(strings.Join(s.told("ada"), "\n"), "<"+title+">") }
	s.eventually("all that ada waits for", func() bool { return times("one")+times("two")+times("three") >= 3 })
	s.eventually("bob's mails", func() bool { return len(s.told("bob")) == 3 })
	for _, title := range []string{"one", "two", "three"} {
		if n := times(title); n != 1 {
			t.Errorf("ada is told of %s %d times: %q", title, n, s.told("ada"))
		}
	}
	for _, text := range s.told("ada") {
		if !strings.HasPrefix(text, "Together") {
			t.Errorf("ada is told %q", text)
		}
	}
}

func TestWaitingDigestSurvivesRestartAndCadenceChange(t *testing.T) {
	s := start(t, sink.Inject{})
	s.digests()
	s.wants(201, "ada", far())
	s.tell("one", "two", "three", "four", "five")
	s.app.Stop()
	s.open()
	s.tell("six")
	if told := s.told("ada"); len(told) != 0 {
		t.Fatalf("ada is told %q before it is due", told)
	}
	s.wants(200, "ada", "immediate")
	s.eventually("what waited", func() bool { return len(s.told("ada")) == 1 })
	if told, want := s.told("ada")[0], "Together <three> <four> <five> <six> and 2 more"; told != want {
		t.Errorf("told %q, want %q", told, want)
	}
	s.tell("seven")
	s.eventually("the next", func() bool { return len(s.told("ada")) == 2 })
	if told := s.told("ada")[1]; told != "At once <seven>" {
		t.Errorf("told %q", told)
	}
}

func TestWaitingDigestIsSentAfterItsTopicHasNone(t *testing.T) {
	s := start(t, sink.Inject{})
	s.digests()
	s.wants(201, "ada", far())
	s.tell("one", "two")
	s.wants(200, "ada", "immediate")
	s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\ntopics: {story: {key: title, template: story}}\ntemplates: {stories: {delete: true}}\n")
	s.eventually("what waited", func() bool { return len(s.told("ada")) == 1 })
	if told, want := s.told("ada")[0], "Together <one> <two> and 0 more"; told != want {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestDigestOfStatesHasTheCurrentStates(t *testing.T) {
	s := start(t, sink.Inject{})
	s.digests()
	s.tell("one", "two", "one")
	s.wants(201, "ada", "window 1s of state")
	s.eventually("two states", func() bool { return len(s.told("ada")) >= 2 })
	for _, told := range s.told("ada") {
		if told != "Together <two> <one> and 0 more" {
			t.Errorf("told %q", told)
		}
	}
}
