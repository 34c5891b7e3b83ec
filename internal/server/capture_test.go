package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/sink"
)

// restartWith stops the server and starts it with other settings.
func (s *testServer) restartWith(change func(*config.Config)) {
	s.t.Helper()
	if err := s.app.Stop(); err != nil {
		s.t.Fatal(err)
	}
	s.change = change
	s.open()
}

// With capture, nothing is really sent: no waiting, retried, direct or new messages.
func TestCapturedServerSendsNothing(t *testing.T) {
	t.Parallel()
	for _, into := range []string{"smtp", "folder"} {
		t.Run(into, func(t *testing.T) {
			t.Parallel()
			s := start(t, sink.Inject{TempFail: 1, TempFailAlways: true})
			captured, at := hop(t, sink.Inject{})
			folder := filepath.Join(t.TempDir(), "mails")
			s.apply()
			s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(20))
			s.must(200, "POST", "/v1/apply", "application/yaml", "service: news\nchannels:\n  email: {driver: smtp, relay: \""+s.addr+"\", from: a@example.org, rate: unlimited, retry: [8s, 8s, 8s]}\n")
			s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Refused for now","level":0}`)
			s.eventually("two refusals", func() bool { return s.sink.Stats().Rejected4xx == 2 })
			s.must(204, "POST", "/v1/pause", "application/json", `{"scope":{"kind":"channel","name":"email"}}`)
			s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Held before","level":9}`)
			s.restartWith(func(c *config.Config) {
				if c.Capture = "smtp://" + at; into == "folder" {
					c.Capture = folder
				}
			})
			before := s.sink.Stats().Connections
			count := func() int {
				if into == "smtp" {
					return int(captured.Stats().Unique)
				}
				files, _ := filepath.Glob(filepath.Join(folder, "news", "email", "*.eml"))
				return len(files)
			}
			s.must(204, "POST", "/v1/resume", "application/json", `{"scope":{"kind":"channel","name":"email"}}`)
			s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"New","level":9}`)
			s.must(201, "POST", "/v1/messages", "application/json", `{"to":"direct@example.org","channel":"email","content":{"subject":"S","text":"T"}}`)
			s.eventually("43 captured messages", func() bool { return count() == 43 })
			if n := s.sink.Stats().Connections; n != before {
				t.Errorf("the relay got %d connections", n-before)
			}
			if into == "folder" {
				files, _ := filepath.Glob(filepath.Join(folder, "news", "email", "*.eml"))
				text, err := os.ReadFile(files[0])
				if err != nil || !bytes.Contains(text, []byte("X-Fanfare-Captured: news/email\r\n")) {
					t.Errorf("%v, %s", err, text)
				}
				shown := s.must(200, "GET", "/v1/captured?recipient=direct@example.org", "", "")
				if !strings.Contains(shown, `"subject":"S"`) || !strings.Contains(shown, `"channel":"email"`) || strings.Count(shown, `"id":`) != 1 {
					t.Errorf("the API shows %s", shown)
				}
				id := strings.TrimSuffix(filepath.Base(files[0]), ".eml")
				if shown := s.must(200, "GET", "/v1/captured/"+id, "", ""); !strings.Contains(shown, `"text":`) {
					t.Errorf("the API shows %s", shown)
				}
				s.must(204, "DELETE", "/v1/captured", "", "")
				if left := count(); left != 0 {
					t.Errorf("%d messages are left", left)
				}
			}
			if status := s.must(200, "GET", "/v1/status", "", ""); !strings.Contains(status, `"capture":`) || !strings.Contains(status, `"name":"capture `) {
				t.Errorf("the status does not show the capture: %s", status)
			}
		})
	}
}

func TestOnlyAllowedRecipientsGetMail(t *testing.T) {
	for _, capturing := range []bool{true, false} {
		t.Run(map[bool]string{true: "others are captured", false: "others are suppressed"}[capturing], func(t *testing.T) {
			s := start(t, sink.Inject{})
			captured, at := hop(t, sink.Inject{})
			s.apply()
			s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(30))
			s.restartWith(func(c *config.Config) {
				c.AllowRecipients = []string{"Person7@example.org", "@tester.example"}
				if capturing {
					c.Capture = "smtp://" + at
				}
			})
			s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"New","level":9}`)
			s.must(201, "POST", "/v1/messages", "application/json", `{"to":"a@tester.example","channel":"email","content":{"subject":"S","text":"T"}}`)
			s.eventually("both broadcasts to complete", func() bool {
				return strings.Count(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`) == 2
			})
			others := int64(29)
			if !capturing {
				others = 0
				if counts := s.must(200, "GET", "/v1/broadcasts", "", ""); !strings.Contains(counts, `"suppressed":29`) {
					t.Errorf("not suppressed: %s", counts)
				}
				if trace := s.must(200, "GET", "/v1/subscribers/person3@example.org/deliveries", "", ""); !strings.Contains(trace, "not in allow_recipients") {
					t.Errorf("the trace does not show the reason: %s", trace)
				}
			}
			if left := s.sink.Stats().Unique; left != 2 || captured.Stats().Unique != others {
				t.Errorf("%d left and %d were captured, want 2 and %d", left, captured.Stats().Unique, others)
			}
			for _, m := range s.sink.Messages() {
				if to := m.To[0]; to != "person7@example.org" && to != "a@tester.example" {
					t.Errorf("a message left to %s", to)
				}
			}
		})
	}
}
