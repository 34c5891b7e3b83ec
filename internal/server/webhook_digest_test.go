package server_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/sink"
)

func TestWebhookGetsADigest(t *testing.T) {
	s, h := start(t, sink.Inject{}), startHook(t)
	s.must(200, "POST", "/v1/apply", "application/yaml", hooksDocument+"    digest: {template: stories}\ntemplates:\n  stories: {subject: s, text: t}\n")
	s.must(201, "POST", "/v1/subscriptions", "application/json", fmt.Sprintf(`{"id":"ops/1","topic":"story","channel":"hook","to":"%s/a","rule":"level","params":{"from":3},"cadence":"window 2s"}`, h.URL))
	for n := range 3 {
		s.must(202, "POST", "/v1/topics/story/events", "application/json", fmt.Sprintf(`{"title":"%d","level":4}`, n))
	}
	type item struct {
		Event struct {
			Specversion string
			Data        struct{ Title string }
		}
		Topic, Ref    string
		Subscriptions []string
	}
	var told []item
	s.eventually("all items", func() bool {
		told = nil
		for _, p := range h.all() {
			var document struct {
				Type string
				Data struct {
					Digest        struct{ Cadence string }
					Count, More   int
					Items         []item
					Subscriptions []struct{ ID, Rule string }
				}
			}
			if err := json.Unmarshal([]byte(p.body), &document); err != nil || p.head.Get("Webhook-Signature") == "" {
				t.Fatalf("posted %s: %v", p.body, err)
			}
			d := document.Data
			if document.Type != "digest" || d.Digest.Cadence != "window 2s" || d.Count != len(d.Items) || d.More != 0 || len(d.Subscriptions) != 1 || d.Subscriptions[0].Rule != "level" {
				t.Fatalf("posted %s", p.body)
			}
			told = append(told, d.Items...)
		}
		return len(told) >= 3
	})
	for n, one := range told {
		if one.Event.Data.Title != fmt.Sprint(n) || one.Event.Specversion != "1.0" || one.Topic != "story" || one.Ref == "" || len(one.Subscriptions) != 1 || one.Subscriptions[0] != "ops/1" {
			t.Errorf("item %d is %+v", n, one)
		}
	}
	if len(told) != 3 {
		t.Errorf("%d items were told in %d documents", len(told), len(h.all()))
	}
}
