package bench

import (
	"context"
	"fmt"
	"io"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/mailboxes"
	"fanfare.dev/fanfare/internal/bench/matching"
	"fanfare.dev/fanfare/internal/bench/rawlimit"
	"fanfare.dev/fanfare/internal/bench/rendering"
	"fanfare.dev/fanfare/internal/bench/sessions"
)

// Part runs one of the processes of an experiment by its name. spec is JSON. Part writes
// lines of JSON to out. It ends by itself, or, if it serves requests, when in ends.
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
	case "nats":
		return harness.RunPartInProcess(ctx, spec, in, out, harness.RunNATS)
	case "worker":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.WorkerPart)
	case "clients":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.ClientPart)
	case "steady":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.PacedPart)
	case "slow":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.SlowPart)
	case "fill":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.FillPart)
	case "reread":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.RereadPart)
	case "requests":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.NATSPart)
	case "rabbitmq":
		return harness.RunPartInProcess(ctx, spec, in, out, sessions.RabbitMQPart)
	case "users":
		return harness.RunPartInProcess(ctx, spec, in, out, mailboxes.UsersPart)
	case "jmap-users":
		return harness.RunPartInProcess(ctx, spec, in, out, mailboxes.JMAPUsersPart)
	case "match":
		return harness.RunPartInProcess(ctx, spec, in, out, matching.MatchPart)
	case "adds":
		return harness.RunPartInProcess(ctx, spec, in, out, matching.AddsPart)
	case "form":
		return harness.RunPartInProcess(ctx, spec, in, out, rendering.RenderPart)
	}
	return fmt.Errorf("unknown part %q", name)
}
