package delivertest

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/remote"
)

// Elsewhere returns a driver that runs d at the other end of a link over TCP.
func Elsewhere(t testing.TB, d driver.Driver) driver.Driver {
	t.Helper()
	joined := make(chan struct{}, 8)
	logger := slog.New(slog.DiscardHandler)
	hub := remote.NewHub(remote.HubOptions{Changed: func() { joined <- struct{}{} }, Logger: logger})
	t.Cleanup(hub.Close)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // it has no further connections
	node, err := new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	leader, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	agent := remote.NewAgent(remote.AgentOptions{Drain: time.Second, Logger: logger, Drivers: func(context.Context, []byte) (map[string]driver.Driver, error) {
		return map[string]driver.Driver{"relay": d}, nil
	}})
	go hub.Attach(leader, "elsewhere", "test")
	go func() { _ = agent.Serve(context.Background(), node) }() // it ends with the hub
	<-joined
	return hub.Nodes()[0].Driver(remote.NewChannel(1, nil), "relay")
}
