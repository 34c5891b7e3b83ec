package e2e

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare/internal/sink"
)

// NATS stores an event again, as it does if a former leader had sent it and the network delivers it late, when the next leader has
// accepted the event from a client that repeated it. The event is sent once, before and after another node leads.
func TestAnEventThatAFormerLeaderAppendsLateIsSentOnce(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	leader, standby := c.pair()
	r := newRelay(t, sink.Config{})
	leader.http.must(200, "POST", "/v1/apply", yaml, news(r.addr, ""))
	people := crowd(20)
	leader.subscribe(people...)
	conn, err := nats.Connect(c.nats)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "EVENTS")
	if err != nil {
		t.Fatal(err)
	}
	last := func() *jetstream.RawStreamMsg {
		t.Helper()
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetMsg(t.Context(), info.State.LastSeq)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	late := func(m *jetstream.RawStreamMsg) {
		t.Helper()
		if _, err := js.Publish(t.Context(), m.Subject, m.Data); err != nil {
			t.Fatal(err)
		}
	}
	first := leader.publishAgain("first")
	stored := last()
	late(stored)
	leader.http.completed(first)
	leader.http.completed(leader.publishAgain("second"))
	leader.kill()
	standby.http.completed(standby.publishAgain("third")) // waits for the takeover
	late(stored)
	standby.http.completed(standby.publishAgain("fourth"))
	for _, title := range []string{"first", "second", "third", "fourth"} {
		r.expect(title, people)
	}
}
