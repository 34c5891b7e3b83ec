package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/nats-io/nats-server/v2/server"
)

// NATSSpec says how a part runs a NATS server.
type NATSSpec struct {
	Dir  string // of JetStream; "": the server has no streams
	Sync bool   // before each acknowledgement

	MaxPayload int32 // bytes of a message; 0: the default of NATS
	MaxPending int64 // bytes that wait for one connection; 0: the default of NATS
}

// NATSAddress is the line with which a part of NATS says that it is ready.
type NATSAddress struct {
	URL string `json:"url"`
}

// startNATS starts a NATS server in a process of its own.
func (l *Env) startNATS(name string) (*Process, string, error) {
	c, err := l.StartPart("nats", NATSSpec{Dir: l.File(name + "-nats"), Sync: l.Durability == "fsync"})
	if err != nil {
		return nil, "", err
	}
	var at NATSAddress
	if err := c.ReadJSON(&at); err != nil {
		return nil, "", err
	}
	return c, at.URL, nil
}

// RunNATS runs a NATS server on a free port of this machine until in ends.
func RunNATS(ctx context.Context, spec NATSSpec, in io.Reader, out *json.Encoder) error {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: spec.Dir != "", StoreDir: spec.Dir, SyncAlways: spec.Sync,
		MaxPayload: spec.MaxPayload, MaxPending: spec.MaxPending, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(startPatience) {
		return fmt.Errorf("NATS did not start within %v", startPatience)
	}
	return RunUntilEnd(ctx, s.ClientURL(), in, out)
}

// RunUntilEnd says that a part of NATS is ready, and waits until in ends.
func RunUntilEnd(ctx context.Context, url string, in io.Reader, out *json.Encoder) error {
	if err := out.Encode(NATSAddress{URL: url}); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}
