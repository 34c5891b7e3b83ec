package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"fanfare.dev/fanfare/internal/sink"
)

// Part runs one of the processes of an experiment: sink, blast or http. spec is
// JSON. It writes JSON lines to out and ends by itself, or, where it serves, when
// in ends.
func Part(ctx context.Context, name, spec string, in io.Reader, out io.Writer) error {
	switch name {
	case "sink":
		return run(ctx, spec, in, out, sinkPart)
	case "blast":
		return run(ctx, spec, in, out, blastPart)
	case "http":
		return run(ctx, spec, in, out, httpPart)
	}
	return fmt.Errorf("no part %q", name)
}

func run[S any](ctx context.Context, text string, in io.Reader, out io.Writer, part func(context.Context, S, io.Reader, *json.Encoder) error) error {
	var spec S
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	return part(ctx, spec, in, json.NewEncoder(out))
}

// part starts a part in a process of its own.
func (l *lab) part(name string, spec any) (*child, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	return l.spawn(name, nil, l.Binary, "bench", "part", name, string(text))
}

type sinkSpec struct {
	TLS    bool
	Inject sink.Inject
	Record string // file, "" for none
}

type sinkAddress struct {
	SMTP string `json:"smtp"`
}

// sinkPart takes mail until its input ends, then tells what it saw.
func sinkPart(_ context.Context, spec sinkSpec, in io.Reader, out *json.Encoder) error {
	cfg := sink.Config{Inject: spec.Inject}
	if spec.TLS {
		certificate, _, err := sink.SelfSigned("127.0.0.1")
		if err != nil {
			return err
		}
		cfg.TLS = certificate
	}
	if spec.Record != "" {
		f, err := os.Create(spec.Record)
		if err != nil {
			return err
		}
		defer f.Close()
		cfg.Record = f
	}
	server := sink.New(cfg)
	addr, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve() }()
	if err := out.Encode(sinkAddress{addr.String()}); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-failed; err != nil {
		return err
	}
	return out.Encode(server.Stats())
}
