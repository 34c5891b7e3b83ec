package harness

import (
	"context"
	"encoding/json"
	"io"

	"fanfare.dev/fanfare/internal/bench/report"
)

// RunPart runs a part that answers with one line, and records the CPU time and memory of
// its process.
func (l *Env) RunPart(r *report.Record, part string, spec, result any) error {
	before, own := ReadCPUTimes(), OwnCPU()
	c, err := l.StartPart(part, spec)
	if err != nil {
		return err
	}
	if err := c.ReadJSON(result); err != nil {
		return err
	}
	if err := c.Wait(); err != nil {
		return err
	}
	r.RSSMiB = max(r.RSSMiB, c.Final.PeakMiB)
	r.CPUSeconds += c.Final.CPU.Seconds()
	noteOthers(r, ReadCPUTimes().since(before).others(c.Final.CPU+OwnCPU()-own))
	return nil
}

func RunPartInProcess[S any](ctx context.Context, text string, in io.Reader, out io.Writer, part func(context.Context, S, io.Reader, *json.Encoder) error) error {
	var spec S
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return err
	}
	return part(ctx, spec, in, json.NewEncoder(out))
}

// partsOfTheProduct are the parts that measure code of the product. The others measure a
// limit.
var partsOfTheProduct = map[string]bool{"match": true, "adds": true, "form": true}

// StartPart starts a part of an experiment in a process of its own.
func (l *Env) StartPart(name string, spec any) (*Process, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	binary := l.Binary
	if partsOfTheProduct[name] {
		binary = l.Tested
	}
	return l.Spawn(name, nil, binary, "bench", "part", name, string(text))
}
