package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
)

// Part runs one of the processes of an experiment: blast, http, bus, rows, scan,
// match, adds or form. spec is JSON. It writes JSON lines to out and ends by itself, or, where
// it serves, when in ends.
func Part(ctx context.Context, name, spec string, in io.Reader, out io.Writer) error {
	switch name {
	case "blast":
		return run(ctx, spec, in, out, blastPart)
	case "http":
		return run(ctx, spec, in, out, httpPart)
	case "bus":
		return run(ctx, spec, in, out, busPart)
	case "rows":
		return run(ctx, spec, in, out, rowsPart)
	case "scan":
		return run(ctx, spec, in, out, scanPart)
	case "match":
		return run(ctx, spec, in, out, matchPart)
	case "adds":
		return run(ctx, spec, in, out, addsPart)
	case "form":
		return run(ctx, spec, in, out, formPart)
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

// partsOfTheProduct are those that measure code of the product, and not a limit.
var partsOfTheProduct = map[string]bool{"match": true, "adds": true, "form": true}

// part starts a part in a process of its own.
func (l *lab) part(name string, spec any) (*child, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	binary := l.Binary
	if partsOfTheProduct[name] {
		binary = l.Tested
	}
	return l.spawn(name, nil, binary, "bench", "part", name, string(text))
}
