package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/sink"
)

// hop starts a capture server as one of several relays.
func hop(t *testing.T, inject sink.Inject) (*sink.Server, string) {
	t.Helper()
	s := sink.New(sink.Config{Inject: inject})
	addr, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve() }()
	t.Cleanup(func() { s.Close() })
	return s, addr.(*net.TCPAddr).String()
}

// busyHop starts a relay that replies 421 to every message.
func busyHop(t *testing.T) (asked *atomic.Int64, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	asked = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				fmt.Fprint(c, "220 busy.example ESMTP\r\n")
				for in := bufio.NewScanner(c); in.Scan(); {
					if strings.HasPrefix(in.Text(), "EHLO") {
						fmt.Fprint(c, "250-busy.example\r\n250 PIPELINING\r\n")
						continue
					}
					asked.Add(1)
					fmt.Fprint(c, "421 4.3.2 too busy\r\n")
					return
				}
			}()
		}
	}()
	return asked, l.Addr().String()
}

// severalRelays applies a channel with relays of equal weight.
func (s *testServer) severalRelays(addresses ...string) {
	s.t.Helper()
	var relays []string
	for _, address := range addresses {
		relays = append(relays, fmt.Sprintf("{relay: %q}", address))
	}
	s.must(200, "POST", "/v1/apply", "application/yaml", fmt.Sprintf(`
service: news
channels:
  email: {driver: smtp, relays: [%s], connections: 12, from: "News <news@example.org>", rate: unlimited, retry: [1s, 1s, 1s]}
`, strings.Join(relays, ", ")))
}

type relayState struct {
	Name, State string
	Accepted    int64
	Connections int
}

func (s *testServer) relayStates() map[string]relayState {
	s.t.Helper()
	var status struct {
		Channels []struct{ Relays []relayState }
	}
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/status", "", "")), &status); err != nil {
		s.t.Fatal(err)
	}
	states := map[string]relayState{}
	for _, r := range status.Channels[0].Relays {
		states[r.Name] = r
	}
	return states
}

// Of four relays one dies, one is slow and one replies 421 to every message. Each message arrives; only
// those that were being sent to the dead relay may arrive twice.
func TestBroadcastArrivesWhileOneRelayWorks(t *testing.T) {
	s := start(t, sink.Inject{})
	dying, dyingAt := hop(t, sink.Inject{Delay: 2 * time.Millisecond, DelayShare: 1})
	slow, slowAt := hop(t, sink.Inject{Delay: 300 * time.Millisecond, DelayShare: 1})
	asked, busyAt := busyHop(t)
	s.apply()
	s.severalRelays(dyingAt, slowAt, busyAt, s.addr)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(6000))
	s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"It arrives","level":9}`)
	s.eventually("messages by the relay that dies", func() bool { return dying.Stats().Unique > 50 })
	dying.Close()
	s.eventually("the broadcast to complete", func() bool {
		return strings.Contains(s.must(200, "GET", "/v1/broadcasts", "", ""), `"state":"completed"`)
	})
	var accepted, unique int64
	for _, one := range []*sink.Server{dying, slow, s.sink} {
		accepted += one.Stats().Accepted
		unique += one.Stats().Unique
	}
	if accepted < 6000 || accepted > 6000+12 || unique != accepted {
		t.Errorf("%d of 6000 arrived: dying %+v, slow %+v, good %+v", accepted, dying.Stats(), slow.Stats(), s.sink.Stats())
	}
	if slow.Stats().Unique == 0 || asked.Load() == 0 {
		t.Errorf("the slow relay took %d, the busy one was tried %d times", slow.Stats().Unique, asked.Load())
	}
	counts := s.must(200, "GET", "/v1/broadcasts", "", "")
	if !strings.Contains(counts, `"accepted":6000`) {
		t.Errorf("not all messages are accepted: %s", counts)
	}
	states := s.relayStates()
	if states[dyingAt].State == "up" || states[busyAt].State == "up" || states[s.addr].State != "up" {
		t.Errorf("states %+v", states)
	}
}

func TestDrainedRelayGetsNothing(t *testing.T) {
	s := start(t, sink.Inject{})
	other, otherAt := hop(t, sink.Inject{})
	s.apply()
	s.severalRelays(otherAt, s.addr)
	s.must(200, "POST", "/v1/subscriptions?quiet=true", "application/x-ndjson", people(100))
	scope := fmt.Sprintf(`{"scope":{"kind":"relay","name":"email/%s"},"reason":"maintenance"}`, otherAt)
	s.must(204, "POST", "/v1/pause", "application/json", scope)
	publish := func(want int64) {
		t.Helper()
		s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"Some","level":9}`)
		s.eventually("100 more mails", func() bool { return s.sink.Stats().Accepted+other.Stats().Accepted == want })
	}
	publish(100)
	s.severalRelays(s.addr, otherAt) // the drain stays with other settings
	publish(200)
	if err := s.app.Stop(); err != nil {
		t.Fatal(err)
	}
	s.open()
	publish(300)
	if n := other.Stats().Connections; n != 0 {
		t.Errorf("the drained relay got %d connections", n)
	}
	if status := s.must(200, "GET", "/v1/status", "", ""); !strings.Contains(status, `"state":"drained"`) || !strings.Contains(status, "maintenance") {
		t.Errorf("the status does not show the drain: %s", status)
	}
	s.must(204, "POST", "/v1/resume", "application/json", scope)
	s.must(422, "POST", "/v1/cancel", "application/json", scope)
	for range 5 {
		s.must(202, "POST", "/v1/topics/story/events", "application/json", `{"title":"More","level":9}`)
	}
	s.eventually("messages by the resumed relay", func() bool { return other.Stats().Accepted > 0 })
	if code, answer := s.call("POST", "/v1/pause", "application/json", `{"scope":{"kind":"relay","name":"email/nobody:25"}}`); code != 404 {
		t.Errorf("an unknown relay: %d %s", code, answer)
	}
}
