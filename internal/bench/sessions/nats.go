package sessions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats.go"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	natsSubject = "work"
	natsWindow  = 16 << 20 // bytes of requests without replies, for all connections together
	natsMost    = 4096     // and requests for each connection
)

// natsSpec is what the processes of raw NATS are told.
type natsSpec struct {
	URL      string // "": run a server
	Clients  int    // 0: answer requests
	Requests int
	Size     int
}

// NATSPart is one of the three processes of raw request/reply: the server, the responder or the requester. The first two run
// until their input ends.
func NATSPart(ctx context.Context, spec natsSpec, in io.Reader, out *json.Encoder) error {
	switch {
	case spec.URL == "":
		return harness.RunNATS(ctx, harness.NATSSpec{MaxPayload: 2 << 20, MaxPending: 256 << 20}, in, out)
	case spec.Clients == 0:
		conn, err := nats.Connect(spec.URL)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Subscribe(natsSubject, func(m *nats.Msg) { _ = m.Respond(m.Data) }) // the requester notices what is missing
		if err == nil {
			err = conn.Flush()
		}
		if err != nil {
			return err
		}
		return harness.RunUntilEnd(ctx, spec.URL, in, out)
	}
	total, err := requestNATS(ctx, spec)
	if err != nil {
		return err
	}
	return out.Encode(total)
}

// replied is the result of the requester.
type replied struct {
	Total time.Duration
	CPU   time.Duration // of this process in that time
}

// requestNATS sends requests over several connections, many at a time, and waits for all replies.
func requestNATS(ctx context.Context, spec natsSpec) (replied, error) {
	each := spec.Requests / spec.Clients
	failed := make(chan error, spec.Clients)
	var conns []*nats.Conn
	for range spec.Clients {
		conn, err := nats.Connect(spec.URL)
		if err != nil {
			return replied{}, err
		}
		defer conn.Close()
		conns = append(conns, conn)
	}
	window := max(1, min(natsMost, natsWindow/spec.Clients/max(1, spec.Size)))
	started, cpu := time.Now(), harness.OwnCPU()
	for _, conn := range conns {
		go func() { failed <- requestOver(ctx, conn, each, spec.Size, window) }()
	}
	for range conns {
		if err := <-failed; err != nil {
			return replied{}, err
		}
	}
	return replied{time.Since(started), harness.OwnCPU() - cpu}, nil
}

func requestOver(ctx context.Context, conn *nats.Conn, requests, size, window int) error {
	inbox := conn.NewInbox()
	free := make(chan struct{}, window)
	done := make(chan struct{})
	replies := 0
	_, err := conn.Subscribe(inbox, func(*nats.Msg) {
		<-free
		if replies++; replies == requests {
			close(done)
		}
	})
	if err != nil {
		return err
	}
	body := make([]byte, size)
	for range requests {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := conn.PublishRequest(natsSubject, inbox, body); err != nil {
			return err
		}
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A limit is what raw NATS reaches.
type limit struct {
	rate float64 // requests per second
	cpu  float64 // microseconds of a request, in all three processes
}

// rawNATS measures raw request/reply. Its conditions are those of a session, or better: as many connections of requesters, one
// responder with one connection instead of two, at least as many requests on the way as fill the processors, and no check of
// the replies but their number.
func rawNATS(l *harness.Env, clients, requests, size int) (limit, error) {
	broker, url, err := startNATS(l, natsSpec{})
	if err != nil {
		return limit{}, err
	}
	responder, _, err := startNATS(l, natsSpec{URL: url})
	if err != nil {
		return limit{}, err
	}
	before := broker.Used().CPU + responder.Used().CPU
	requester, err := l.StartPart("requests", natsSpec{URL: url, Clients: clients, Requests: requests, Size: size})
	if err != nil {
		return limit{}, err
	}
	var got replied
	if err := requester.ReadJSON(&got); err != nil {
		return limit{}, err
	}
	got.CPU += broker.Used().CPU + responder.Used().CPU - before
	err = errors.Join(requester.Wait(), responder.Wait(), broker.Wait())
	n := requests / clients * clients
	return limit{float64(n) / got.Total.Seconds(), report.MicrosPer(got.CPU, n)}, err
}

func startNATS(l *harness.Env, spec natsSpec) (*harness.Process, string, error) {
	c, err := l.StartPart("requests", spec)
	if err != nil {
		return nil, "", err
	}
	var at harness.NATSAddress
	if err := c.ReadJSON(&at); err != nil {
		return nil, "", err
	}
	return c, at.URL, nil
}
