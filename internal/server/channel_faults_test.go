package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"

	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/sink"
)

// plain is a channel that does not sign, and a topic that uses it.
const plain = "  plain: {driver: smtp, relay: %RELAY%, from: News <news@example.org>, rate: unlimited}\ntopics:\n  other: {template: news}\n"

// lastError returns why a channel does not send messages.
func (s *testServer) lastError(channel string) string {
	s.t.Helper()
	var status struct {
		Channels []struct {
			Name      string `json:"name"`
			LastError string `json:"last_error"`
		} `json:"channels"`
	}
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/status", "", "")), &status); err != nil {
		s.t.Fatal(err)
	}
	for _, c := range status.Channels {
		if c.Name == channel {
			return c.LastError
		}
	}
	s.t.Fatalf("there is no channel %s", channel)
	return ""
}

// A key file that is missing at the start affects only the channel that needs it.
func TestMissingKeyHoldsMailOfItsChannelOnly(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	document := strings.Replace(s.signs(z.key(t, "first", dkim.Ed25519)), "topics:\n", strings.Replace(plain, "%RELAY%", s.addr, 1), 1)
	s.must(200, "POST", "/v1/apply", "application/yaml", document)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"personal","channel":"email","to":"a@example.net"}`)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"other","channel":"plain","to":"b@example.net"}`)
	file := filepath.Join(z.dir, "first.pem")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	before := s.sink.Stats().Messages
	s.must(202, "POST", "/v1/topics/personal/events", "application/json", `{}`)
	s.newest("other")
	s.eventually("the reason is shown", func() bool { return strings.Contains(s.lastError("email"), file) })
	if got := s.sink.Stats().Messages - before; got != 1 || s.lastError("plain") != "" {
		t.Errorf("%d mails have left, and the error of plain is %q", got, s.lastError("plain"))
	}

	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	s.eventually("the held mail to leave", func() bool { return s.sink.Stats().Messages == before+2 && len(s.sink.Messages()) >= int(before)+2 })
	all := s.sink.Messages()
	if got := strings.Join(z.signers(t, all[len(all)-1].Body), " "); got != "first" {
		t.Errorf("the held mail is signed by %q", got)
	}
}

// An apply reports settings that cannot take effect. The former settings remain in force until the new ones can.
func TestMissingPasswordKeepsFormerSettings(t *testing.T) {
	s := start(t, sink.Inject{})
	document := s.signs()
	document = strings.Replace(document, "dkim: [{}]", "grouping: lockstep", 1)
	s.must(200, "POST", "/v1/apply", "application/yaml", document)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"personal","channel":"email","to":"a@example.net"}`)
	s.newest("personal")
	file := filepath.Join(t.TempDir(), "password")
	asks := strings.Replace(document, "grouping: lockstep", "tls: required, username: fanfare, password_file: "+file, 1)
	if answer := s.must(503, "POST", "/v1/apply", "application/yaml", asks); !strings.Contains(answer, file) {
		t.Errorf("the answer does not name the file: %s", answer)
	}
	s.newest("personal")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(202, "POST", "/v1/topics/personal/events", "application/json", `{}`)
	s.eventually("the new settings to be in force", func() bool {
		s.must(202, "POST", "/v1/topics/personal/events", "application/json", `{}`)
		return s.lastError("email") != ""
	})
}

// note sends a message to one address over the channel email, and returns its event.
func (s *testServer) note() string {
	s.t.Helper()
	answer := s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"email","to":"a@example.net","content":{"subject":"Note","text":"Here it is"}}`)
	event := answer[strings.Index(answer, "evt-"):]
	event = event[:strings.Index(event, `"`)]
	s.eventually("the message is made", func() bool { return s.broadcast(event).Messages == 1 })
	return event
}

// breakChannel restarts the server with a channel email that cannot send, and returns the missing file.
func (s *testServer) breakChannel() (file string) {
	s.t.Helper()
	var z zone
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(z.key(s.t, "first", dkim.Ed25519)))
	file = filepath.Join(z.dir, "first.pem")
	if err := os.Rename(file, file+".away"); err != nil {
		s.t.Fatal(err)
	}
	s.reopen()
	return file
}

// cancelled waits until the only message of a broadcast is cancelled, and checks that no email was sent.
func (s *testServer) cancelled(event string) {
	s.t.Helper()
	s.eventually("the message is cancelled", func() bool { return s.broadcast(event).Counts[fanfare.Cancelled] == 1 })
	if got := s.sink.Stats().Messages; got != 0 {
		s.t.Errorf("%d mails have left", got)
	}
}

func TestCancelSettlesMailOfABrokenChannel(t *testing.T) {
	s := start(t, sink.Inject{})
	file := s.breakChannel()
	event := s.note()
	s.must(204, "POST", "/v1/cancel", "application/json", `{"scope":{"kind":"broadcast","name":"`+event+`"},"reason":"a mistake"}`)
	s.cancelled(event)
	if why := s.lastError("email"); !strings.Contains(why, file) {
		t.Errorf("the error of the channel is %q and does not name the missing file", why)
	}
}

func TestDeletingABrokenChannelCancelsItsMail(t *testing.T) {
	s := start(t, sink.Inject{})
	file := s.breakChannel()
	event := s.note()
	s.must(204, "DELETE", "/v1/channels/email", "", "")
	s.cancelled(event)

	// A new channel with the key sends.
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs("selector: first, domain: example.org, key_file: "+file))
	again := s.note()
	s.eventually("a message to leave", func() bool { return s.broadcast(again).Counts[fanfare.Accepted] == 1 })
}

// The waiting messages of a deleted channel are sent after a restart, or cancelled if the channel cannot send.
func TestRestartSettlesMailOfADeletedChannel(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs(z.key(t, "first", dkim.Ed25519)))
	wait := `{"scope":{"kind":"service","name":"news"}}`
	file := filepath.Join(z.dir, "first.pem")
	for _, able := range []bool{true, false} {
		s.must(204, "POST", "/v1/pause", "application/json", wait)
		event := s.note()
		s.must(204, "DELETE", "/v1/channels/email", "", "")
		if !able {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
		s.reopen()
		s.must(204, "POST", "/v1/resume", "application/json", wait)
		want := fanfare.Accepted
		if !able {
			want = fanfare.Cancelled
		}
		s.eventually("the message to be "+want.String(), func() bool { return s.broadcast(event).Counts[want] == 1 })
		if able {
			s.must(200, "POST", "/v1/apply", "application/yaml", s.signs("selector: first, domain: example.org, key_file: "+file))
		}
	}
}
