package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) statusCommand() *cobra.Command {
	var watch bool
	command := &cobra.Command{
		Use: "status", Short: "Show the status of the server",
		Long: `Show the status of the server: the waiting work in each stage, the broadcasts in
progress, the channels, and paused or parked work.`,
		Example: `  fanfare status
  fanfare status --watch
  fanfare status --json | jq .deliveries`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for {
				s, err := api.Status(command.Context())
				if err != nil {
					return err
				}
				if watch && terminal.IsTerminal(c.out) {
					fmt.Fprint(c.out, "\x1b[H\x1b[2J") // home, clear
				}
				if c.json {
					err = c.printJSON(s)
				} else {
					c.printStatus(s)
				}
				if err != nil || !watch {
					return err
				}
				select {
				case <-command.Context().Done():
					return nil // Ctrl-C is how a watch ends
				case <-time.After(time.Second):
				}
			}
		},
	}
	command.Flags().BoolVar(&watch, "watch", false, "update the status every second until Ctrl-C")
	return command
}

// todayText says how much of today's quota is used.
func todayText(q *client.QuotaStatus) string {
	if q == nil {
		return ""
	}
	return strings.TrimSpace(terminal.Grouped(q.Used) + " of " + terminal.Grouped(q.Messages) + " " + q.Zone)
}

// leftOut tells of events that left no state.
func leftOut(events int64) string {
	if events == 0 {
		return ""
	}
	return fmt.Sprintf("; limit reached, %s stored no state", terminal.Amount(events, "event", "events"))
}

// printProblems says which keys, passwords and secrets cannot be used, and what to do.
func (c *cli) printProblems(channels []client.ChannelStatus) {
	begun := false
	for i := range channels {
		for _, p := range channels[i].Problems {
			if !begun {
				fmt.Fprintln(c.out, "\nCHANNEL PROBLEMS")
				begun = true
			}
			fmt.Fprintf(c.out, "%s/%s: %s\n  %s\n", channels[i].Service, channels[i].Name, p.Error, p.Hint)
		}
	}
}

func (c *cli) printStatus(s client.Status) {
	w := c.out
	ready, reason := "ready", ""
	if !s.Ready {
		ready, reason = "not ready", "not ready: "+s.Reason+"\n"
	}
	fmt.Fprintf(w, "fanfare %s, %s, %s, started %s\n%s\n", s.Version, ready, s.Durability, s.Started.Local().Format(time.DateTime), reason)
	table := c.newTable()
	if s.Cluster != nil {
		fmt.Fprintf(table, "cluster\t%s\n", clusterText(s.Cluster))
	}
	if d := s.Database; d != nil {
		state := ""
		if d.Away != nil {
			state = ", unreachable since " + d.Away.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "database\t%s, PostgreSQL %s%s\n", d.Where, d.Version, state)
		if d.Error != "" {
			fmt.Fprintf(table, "database error\t%s\n", d.Error)
		}
		fmt.Fprintf(table, "connections\t%d open, %d busy, at most %d\n", d.Connections, d.Busy, d.Most)
	}
	fmt.Fprintf(table, "event groups to match\t%s\n", terminal.Grouped(s.Bus.EventsPending))
	fmt.Fprintf(table, "batches to deliver\t%s\n", terminal.Grouped(s.Bus.BatchesPending))
	fmt.Fprintf(table, "messages pending\t%s\n", terminal.Grouped(s.Deliveries.Pending))
	fmt.Fprintf(table, "messages deferred\t%s\n", terminal.Grouped(s.Deliveries.Deferred))
	fmt.Fprintf(table, "accepted / failed\t%s/s / %s/s\n", terminal.Grouped(int64(s.Deliveries.AcceptedPerSecond)), terminal.Grouped(int64(s.Deliveries.FailedPerSecond)))
	fmt.Fprintf(table, "parked\t%d\n", s.Parked)
	if s.StateKeys > 0 {
		fmt.Fprintf(table, "states\t%s%s\n", terminal.Amount(int64(s.StateKeys), "key", "keys"), leftOut(s.StatesFull))
	}
	if m := s.Inbound; m != nil {
		fmt.Fprintf(table, "inbound mail\t%s accepted: %s bounces, %s unsubscribe requests, %s for postmaster; %s refused, %s temporarily refused\n",
			terminal.Grouped(m.Taken), terminal.Grouped(m.Bounces), terminal.Grouped(m.Unsubscribes), terminal.Grouped(m.Kept), terminal.Grouped(m.Refused), terminal.Grouped(m.NotNow))
	}
	if s.Suppressions > 0 {
		fmt.Fprintf(table, "suppressed\t%s\n", terminal.Amount(s.Suppressions, "address", "addresses"))
	}
	if m := s.MatchCheck; m != nil {
		fmt.Fprintf(table, "match check\t%s of %s, %s\n", terminal.Amount(m.Reported+m.Unreported, "condition", "conditions"), terminal.Amount(m.Events, "event", "events"), contradictionText(m))
	}
	fmt.Fprintf(table, "index lag\t%s\n", terminal.Amount(s.IndexLagEvents, "event", "events"))
	if s.Untold > 0 {
		fmt.Fprintf(table, "not yet published\t%s outcomes and changes\n", terminal.Grouped(s.Untold))
	}
	fmt.Fprintf(table, "free disk\t%.1f GB\n", float64(s.DiskFreeBytes)/1e9)
	table.Flush()

	c.printQuarantined(s.MatchCheck)
	c.printTemplateFaults(s.TemplateFaults)
	if len(s.Channels) > 0 {
		fmt.Fprintln(table, "\nCHANNEL\tDRIVER\tSTATE\tCONNECTIONS\tRATE\tOF\tTODAY\tLAST ERROR")
		for _, ch := range s.Channels {
			fmt.Fprintf(table, "%s/%s\t%s\t%s\t%d\t%s/s\t%s\t%s\t%s\n", ch.Service, ch.Name, ch.Driver, ch.State, ch.Connections, terminal.Grouped(int64(ch.RatePerSecond)), rateText(ch.RateLimit, ch.RateSetByHand), todayText(ch.DailyQuota), terminal.Short(ch.LastError))
		}
		table.Flush()
		c.printProblems(s.Channels)
	}
	if len(s.Workers) > 0 {
		fmt.Fprintln(table, "\nWORKER\tSESSIONS\tQUEUED\tRUNNING\tINSTANCES\tWANTED")
		for _, w := range s.Workers {
			fmt.Fprintf(table, "%s/%s\t%d\t%s\t%s\t%d\t%d\n", w.Service, w.Name, w.Sessions, terminal.Grouped(w.Queued), terminal.Grouped(w.Running), w.Instances, w.Wanted)
		}
		table.Flush()
	}
	if len(s.Services) > 0 {
		fmt.Fprintln(table, "\nSERVICE\tRATE OF ALL CHANNELS\tOF\tTODAY")
		for _, svc := range s.Services {
			fmt.Fprintf(table, "%s\t%s/s\t%s\t%s\n", svc.Service, terminal.Grouped(int64(svc.RatePerSecond)), svc.RateLimit, todayText(svc.DailyQuota))
		}
		table.Flush()
	}
	if several := slices.DeleteFunc(slices.Clone(s.Channels), func(ch client.ChannelStatus) bool { return len(ch.Relays) < 2 }); len(several) > 0 {
		fmt.Fprintln(w)
		c.printRelays(several)
	}
	if len(s.Gathered) > 0 {
		c.printGathered(s.Gathered)
	}
	if len(s.Broadcasts) > 0 {
		c.printUnderway(s.Broadcasts, time.Now())
	}
	switch {
	case s.Capture != "" && s.AllowRecipients > 0:
		fmt.Fprintf(w, "\nCAPTURED: all messages except those to %d allow_recipients go to %s\n", s.AllowRecipients, s.Capture)
	case s.Capture != "":
		fmt.Fprintf(w, "\nCAPTURED: no messages are delivered; all messages go to %s\n", s.Capture)
	case s.AllowRecipients > 0:
		fmt.Fprintf(w, "\nSTAGING: only messages to %d allow_recipients are delivered; all others are suppressed\n", s.AllowRecipients)
	}
	if s.NextStart != "" {
		fmt.Fprintf(w, "\nMOVED to another database: %s\n", s.NextStart)
	}
	if r := s.Restored; r != nil {
		fmt.Fprintf(w, "\nRESTORED from the backup of %s\n%s\n", r.Backup.Local().Format(time.DateTime), uncertainty(r))
	}
	for i, p := range s.Paused {
		if i == 0 {
			fmt.Fprintln(w, "\nPAUSED")
		}
		what := strings.TrimSpace(string(p.Scope.Kind) + " " + p.Scope.Name)
		fmt.Fprintf(w, "%s since %s", what, p.Since.Local().Format(time.DateTime))
		if p.Reason != "" {
			fmt.Fprintf(w, ": %s", p.Reason)
		}
		fmt.Fprintln(w)
	}
}
