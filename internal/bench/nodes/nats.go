package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"fanfare.dev/fanfare/internal/bench/harness"
)

// NATSPart runs a NATS server with JetStream until its input ends.
func NATSPart(ctx context.Context, spec harness.NATSSpec, in io.Reader, out *json.Encoder) error {
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: spec.Dir, SyncAlways: spec.Sync, NoSigs: true, NoLog: true,
	})
	if err != nil {
		return err
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	if !s.ReadyForConnections(20 * time.Second) {
		return errors.New("NATS did not start within 20 s")
	}
	if err := out.Encode(harness.NATSAddress{URL: s.ClientURL()}); err != nil {
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
