package bench

import (
	"context"
	"fmt"
	"io"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/matching"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/rendering"
)

// Part runs one of the processes of an experiment: blast, http, bus, rows, scan,
// match, adds or form. spec is JSON. It writes JSON lines to out and ends by itself, or, where
// it serves, when in ends.
func Part(ctx context.Context, name, spec string, in io.Reader, out io.Writer) error {
	switch name {
	case "blast":
		return harness.RunPartInProcess(ctx, spec, in, out, rawlimit.SenderPart)
	case "http":
		return harness.RunPartInProcess(ctx, spec, in, out, rawlimit.HTTPPart)
	case "bus":
		return harness.RunPartInProcess(ctx, spec, in, out, rawlimit.BusPart)
	case "rows":
		return harness.RunPartInProcess(ctx, spec, in, out, rawlimit.RowsPart)
	case "scan":
		return harness.RunPartInProcess(ctx, spec, in, out, rawlimit.ScanPart)
	case "match":
		return harness.RunPartInProcess(ctx, spec, in, out, matching.MatchPart)
	case "adds":
		return harness.RunPartInProcess(ctx, spec, in, out, matching.AddsPart)
	case "form":
		return harness.RunPartInProcess(ctx, spec, in, out, rendering.RenderPart)
	}
	return fmt.Errorf("no part %q", name)
}
