package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/sink"
)

// note sends a message to one address by the channel email, and returns its event.
func (s *testServer) note() string {
	s.t.Helper()
	answer := s.must(201, "POST", "/v1/messages", "application/json", `{"channel":"email","to":"a@example.net","content":{"subject":"Note","text":"Here it is"}}`)
	event := answer[strings.Index(answer, "evt-"):]
	event = event[:strings.Index(event, `"`)]
	s.eventually("the message is made", func() bool { return s.broadcast(event).Messages == 1 })
	return event
}

// faulty starts a server anew whose channel email cannot send, and returns the file
// that it would need.
func (s *testServer) faulty() (file string) {
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

// cancelled waits until the one message of a broadcast is, and looks that none has left.
func (s *testServer) cancelled(event string) {
	s.t.Helper()
	s.eventually("the message is cancelled", func() bool { return s.broadcast(event).Counts[fanfare.Cancelled] == 1 })
	if got := s.sink.Stats().Messages; got != 0 {
		s.t.Errorf("%d mails have left", got)
	}
}

func TestACancelReachesWhatWaitsForAChannelThatNeverCouldSend(t *testing.T) {
	s := start(t, sink.Inject{})
	file := s.faulty()
	event := s.note()
	s.must(204, "POST", "/v1/cancel", "application/json", `{"scope":{"kind":"broadcast","name":"`+event+`"},"reason":"a mistake"}`)
	s.cancelled(event)
	if why := s.lastError("email"); !strings.Contains(why, file) {
		t.Errorf("the channel says %q, and not what is missing", why)
	}
}

func TestWhatWaitsForAChannelThatNeverCouldSendEndsWithIt(t *testing.T) {
	s := start(t, sink.Inject{})
	file := s.faulty()
	event := s.note()
	s.must(204, "DELETE", "/v1/channels/email", "", "")
	s.cancelled(event)

	// It is there again, and can.
	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", s.signs("selector: first, domain: example.org, key_file: "+file))
	again := s.note()
	s.eventually("it leaves", func() bool { return s.broadcast(again).Counts[fanfare.Accepted] == 1 })
}

// What is left for a channel leaves by it although it was deleted, also when the
// server was started anew since; it is cancelled where the channel cannot send.
func TestWhatIsLeftForADeletedChannelIsSettledByTheNextStart(t *testing.T) {
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
		s.eventually("it is "+want.String(), func() bool { return s.broadcast(event).Counts[want] == 1 })
		if able {
			s.must(200, "POST", "/v1/apply", "application/yaml", s.signs("selector: first, domain: example.org, key_file: "+file))
		}
	}
}
