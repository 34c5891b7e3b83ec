package bus

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"fanfare.dev/fanfare"
)

// A lossyLink forwards connections to a server. While it loses data, those from the server are dropped.
type lossyLink struct {
	listener net.Listener
	loses    atomic.Bool
	open     atomic.Pointer[net.Conn] // to the server
}

func newLossyLink(t *testing.T, server string) *lossyLink {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyLink{listener: l}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			var dialer net.Dialer
			far, err := dialer.DialContext(context.Background(), "tcp4", server)
			if err != nil {
				_ = near.Close()
				continue
			}
			p.open.Store(&far)
			go p.pass(near, far, false)
			go p.pass(far, near, true)
		}
	}()
	return p
}

func (p *lossyLink) pass(from, to net.Conn, fromServer bool) {
	defer from.Close()
	defer to.Close()
	data := make([]byte, 64<<10)
	for {
		n, err := from.Read(data)
		if err != nil {
			return
		}
		if fromServer && p.loses.Load() {
			continue
		}
		if _, err := to.Write(data[:n]); err != nil {
			return
		}
	}
}

// The connection to NATS is lost while messages are on their way. The next messages wait until the lost ones were delivered
// again, also if the process still holds earlier ones.
func TestEventsStayInOrderWhenTheirConnectionIsLost(t *testing.T) {
	t.Parallel()
	n, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	link := newLossyLink(t, n.Addr().String())
	connect := func(url string) *Bus {
		t.Helper()
		b, err := Open(t.Context(), Options{URL: url, Matches: true, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		return b
	}
	direct := connect(n.ClientURL())
	b := connect("nats://" + link.listener.Addr().String())
	q, err := b.Events(t.Context(), fanfare.Normal)
	if err != nil {
		t.Fatal(err)
	}
	add := func(text string) {
		t.Helper()
		if _, err := direct.AppendEvents(t.Context(), fanfare.Normal, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	consumer := func() *jetstream.ConsumerInfo {
		t.Helper()
		c, err := direct.events.Consumer(t.Context(), consumerName(eventsSubject(fanfare.Normal)))
		if err != nil {
			t.Fatal(err)
		}
		return c.CachedInfo()
	}
	add("done")
	add("held")
	add("returned")
	if err := take(t, q, "done").Done(); err != nil {
		t.Fatal(err)
	}
	held, returned := take(t, q, "held"), take(t, q, "returned")
	add("after")
	if err := take(t, q, "after").Done(); err != nil {
		t.Fatal(err)
	}
	if err := returned.Later(time.Hour); err != nil {
		t.Fatal(err)
	}
	for consumer().NumAckPending > 2 { // until the server has read that "after" is done
		<-time.After(10 * time.Millisecond)
	}
	link.loses.Store(true)
	add("lost 1")
	add("lost 2")
	for consumer().NumAckPending < 4 {
		<-time.After(10 * time.Millisecond)
	}
	_ = (*link.open.Load()).Close()
	link.loses.Store(false)
	add("last")
	take(t, q, "returned") // the end of its pause is not known to the new consumer
	take(t, q, "lost 1")
	take(t, q, "lost 2")
	last := take(t, q, "last")
	if err := held.Done(); err != nil {
		t.Fatal(err)
	}
	if err := last.Done(); err != nil {
		t.Fatal(err)
	}
	for info := consumer(); info.NumAckPending != 3 || info.AckFloor.Stream != 2; info = consumer() {
		<-time.After(10 * time.Millisecond)
	}
}
