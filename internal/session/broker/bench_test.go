package broker

import (
	"fmt"
	"testing"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

// BenchmarkInteractive passes requests of 4 bytes from 8 clients to 8 instances and back, over connections in memory. An
// operation is one request, with the work of the clients and instances.
func BenchmarkInteractive(b *testing.B) { benchmark(b, session.Interactive) }

// BenchmarkDurable does so with a log in memory.
func BenchmarkDurable(b *testing.B) { benchmark(b, session.Durable) }

func benchmark(b *testing.B, kind session.Kind) {
	broker := startBroker(b, newMemoryLog(), define(session.Definition{Name: "echo", Concurrency: 1}))
	for k := range 8 {
		go join(b, broker, "echo", fmt.Sprint("instance-", k), 1).serve()
	}
	info := open(b, broker, session.Options{Worker: "echo", Kind: kind, Resends: -1})
	const clients = 8
	done := make(chan struct{}, clients)
	b.ResetTimer()
	b.ReportAllocs()
	for k := range clients {
		c := attach(b, broker, info.ID, fmt.Sprint("client-", k), 0)
		go func() {
			flood(c, uint64(b.N/clients+1))
			done <- struct{}{}
		}()
	}
	for range clients {
		<-done
	}
}

// flood sends n requests as fast as the window allows and counts the responses.
func flood(c *testClient, n uint64) {
	sent, got, confirmed, window := uint64(0), uint64(0), uint64(0), c.window
	record := frame.AppendRequest(nil, &frame.Request{Body: []byte("1234")})
	for got < n {
		for sent < n && sent < window {
			count := min(n-sent, window-sent, 512)
			f := frame.AppendHeader(make([]byte, 0, frame.HeaderSize+int(count)*len(record)), frame.Header{Type: frame.Requests, Count: uint32(count), First: sent + 1})
			for range count {
				f = append(f, record...)
			}
			select {
			case c.conn.out <- f:
				sent += count
				continue
			default:
			}
			break
		}
		f, err := c.conn.Read(c.t.Context())
		if err != nil {
			c.t.Error(err)
			return
		}
		switch h, _, _ := frame.Parse(f); h.Type {
		case frame.Window:
			window = h.First
		case frame.Responses:
			got = h.First + uint64(h.Count) - 1
			if got-confirmed >= 1000 || got == n {
				confirmed = got
				if c.conn.Write(c.t.Context(), frame.Token(frame.Received, 0, got)) != nil {
					return
				}
			}
		}
	}
}
