package bus

import (
	"log/slog"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"fanfare.dev/fanfare"
)

// The machine of an external NATS server fails: its connections stay open, and nothing is received. The bus uses another server.
func TestTheBusLeavesAServerThatDoesNotReply(t *testing.T) {
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
	links := map[string]*lossyLink{}
	url := ""
	for range 2 { // both lead to the same server, which stands for two servers with copies of the same streams
		link := newLossyLink(t, n.Addr().String())
		address := link.listener.Addr().String()
		links[address] = link
		url += ",nats://" + address
	}
	b, err := Open(t.Context(), Options{URL: url[1:], Matches: true, Lease: time.Hour, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	links[b.conn.ConnectedAddr()].loses.Store(true)
	for limit := time.Now().Add(4 * time.Minute); ; {
		_, err := b.AppendEvents(t.Context(), fanfare.Normal, []byte("an event"))
		if err == nil {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the bus still uses the connection that does not reply: %v", err)
		}
		<-time.After(100 * time.Millisecond)
	}
}
