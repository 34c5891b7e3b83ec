package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/sink"
)

// plain is a channel beside email that signs nothing, and a topic that leaves by it.
const plain = "  plain: {driver: smtp, relay: %RELAY%, from: News <news@example.org>, rate: unlimited}\ntopics:\n  other: {template: news}\n"

// lastError is why letters do not leave by a channel.
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

// A file that is gone when the server starts concerns the one channel that needs it.
func TestAChannelWhoseKeyIsGoneHoldsItsOwnMailAlone(t *testing.T) {
	s := start(t, sink.Inject{})
	var z zone
	document := strings.Replace(s.signs(z.key(t, "first", dkim.Ed25519)), "topics:\n", strings.Replace(plain, "%RELAY%", s.addr, 1), 1)
	s.must(200, "POST", "/v1/apply", "application/yaml", document)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"letter","channel":"email","to":"a@example.net"}`)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"other","channel":"plain","to":"b@example.net"}`)
	file := filepath.Join(z.dir, "first.pem")
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	s.reopen()
	before := s.sink.Stats().Messages
	s.must(202, "POST", "/v1/topics/letter/events", "application/json", `{}`)
	s.newest("other")
	s.eventually("the reason is shown", func() bool { return strings.Contains(s.lastError("email"), file) })
	if got := s.sink.Stats().Messages - before; got != 1 || s.lastError("plain") != "" {
		t.Errorf("%d mails have left, and plain says %q", got, s.lastError("plain"))
	}

	if err := os.Rename(file+".away", file); err != nil {
		t.Fatal(err)
	}
	s.eventually("what waited leaves", func() bool { return s.sink.Stats().Messages == before+2 && len(s.sink.Messages()) >= int(before)+2 })
	all := s.sink.Messages()
	if got := strings.Join(z.signers(t, all[len(all)-1].Body), " "); got != "first" {
		t.Errorf("what waited is signed by %q", got)
	}
}

// Settings that cannot be put in force are told to whoever applies them; those from
// before stay, and they come into force once they can.
func TestAPasswordThatIsNotThereLeavesAChannelAsItWas(t *testing.T) {
	s := start(t, sink.Inject{})
	document := s.signs()
	document = strings.Replace(document, "dkim: [{}]", "grouping: lockstep", 1)
	s.must(200, "POST", "/v1/apply", "application/yaml", document)
	s.must(201, "POST", "/v1/subscriptions", "application/json", `{"topic":"letter","channel":"email","to":"a@example.net"}`)
	s.newest("letter")
	file := filepath.Join(t.TempDir(), "password")
	asks := strings.Replace(document, "grouping: lockstep", "tls: required, username: fanfare, password_file: "+file, 1)
	if answer := s.must(503, "POST", "/v1/apply", "application/yaml", asks); !strings.Contains(answer, file) {
		t.Errorf("the answer does not name the file: %s", answer)
	}
	s.newest("letter")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must(202, "POST", "/v1/topics/letter/events", "application/json", `{}`)
	s.eventually("the relay is asked for what it does not have", func() bool {
		s.must(202, "POST", "/v1/topics/letter/events", "application/json", `{}`)
		return s.lastError("email") != ""
	})
}
