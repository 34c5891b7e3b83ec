package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

const (
	// pollEvery is how often a broadcast that is not over is looked at.
	pollEvery = 200 * time.Millisecond
	// maxMissing is how often it may be missing: an event that was accepted a
	// moment ago can be found only when it is matched.
	maxMissing = 50
)

// await returns when the broadcasts of all events are over, with the sum of
// their deliveries.
func (c *cli) await(ctx context.Context, api *client.Client, events []string) (fanfare.Counts, error) {
	var total fanfare.Counts
	bar := c.newBar("delivering", "messages", int64(len(events)))
	defer bar.End()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	seen := map[string]bool{} // a duplicate has the id of the first
	said := ""
	for done, event := range events {
		if seen[event] {
			continue
		}
		seen[event] = true
		for missing := 0; ; {
			b, err := api.Event(ctx, event)
			if err != nil && fanfare.CodeOf(err) == fanfare.NotFound && missing < maxMissing {
				missing++
			} else if err != nil {
				return total, err
			}
			now := total
			for s, n := range b.Counts {
				now[s] += n
			}
			bar.Set(int64(done), now.Settled())
			if b.State == "completed" || b.State == "cancelled" && b.Counts.Settled() == b.Counts.Total() {
				total = now
				break
			}
			if b.State == "paused" && said != event {
				said = event
				fmt.Fprintf(c.err, "%s is paused: %s\n", event, b.Reason)
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return total, ctx.Err()
			}
		}
	}
	bar.Set(int64(len(events)), total.Settled())
	return total, nil
}

// countsText writes counts as people read them: 98 accepted, 2 failed.
func countsText(counts fanfare.Counts) string {
	var parts []string
	for s, n := range counts {
		if n > 0 {
			parts = append(parts, terminal.Grouped(n)+" "+fanfare.State(s).String())
		}
	}
	if parts == nil {
		return "none"
	}
	return strings.Join(parts, ", ")
}
