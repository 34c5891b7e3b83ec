package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) statusCommand() *cobra.Command {
	var watch bool
	command := &cobra.Command{
		Use: "status", Short: "Show how the server is doing",
		Long: `Show how the server is doing: what waits at each hop, what is under way, every
channel, and what is paused or parked.`,
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
				if watch && isTerminal(c.out) {
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
	command.Flags().BoolVar(&watch, "watch", false, "show it again every second until Ctrl-C")
	return command
}

func (c *cli) printStatus(s client.Status) {
	w := c.out
	ready := "ready"
	if !s.Ready {
		ready = "not ready: " + s.Reason
	}
	fmt.Fprintf(w, "fanfare %s, %s, %s, since %s\n\n", s.Version, ready, s.Durability, s.Started.Local().Format(time.DateTime))
	table := c.newTable()
	fmt.Fprintf(table, "event groups to match\t%s\n", grouped(s.Bus.EventsPending))
	fmt.Fprintf(table, "batches to deliver\t%s\n", grouped(s.Bus.BatchesPending))
	fmt.Fprintf(table, "messages pending\t%s\n", grouped(s.Deliveries.Pending))
	fmt.Fprintf(table, "messages deferred\t%s\n", grouped(s.Deliveries.Deferred))
	fmt.Fprintf(table, "accepted / failed\t%s/s / %s/s\n", grouped(int64(s.Deliveries.AcceptedPerSecond)), grouped(int64(s.Deliveries.FailedPerSecond)))
	fmt.Fprintf(table, "parked\t%d\n", s.Parked)
	fmt.Fprintf(table, "index lag\t%s events\n", grouped(s.IndexLagEvents))
	fmt.Fprintf(table, "free disk\t%.1f GB\n", float64(s.DiskFreeBytes)/1e9)
	table.Flush()

	if len(s.Channels) > 0 {
		fmt.Fprintln(table, "\nCHANNEL\tDRIVER\tSTATE\tCONNECTIONS\tRATE\tLAST ERROR")
		for _, ch := range s.Channels {
			fmt.Fprintf(table, "%s/%s\t%s\t%s\t%d\t%s/s\t%s\n", ch.Service, ch.Name, ch.Driver, ch.State, ch.Connections, grouped(int64(ch.RatePerSecond)), short(ch.LastError))
		}
		table.Flush()
	}
	if len(s.Broadcasts) > 0 {
		fmt.Fprintln(table, "\nBROADCAST\tTOPIC\tLANE\tSTATE\tSETTLED\tOF")
		for _, b := range s.Broadcasts {
			fmt.Fprintf(table, "%s\t%s/%s\t%s\t%s\t%s\t%s\n", b.Event, b.Service, b.Topic, b.Lane, b.State, grouped(b.Counts.Settled()), grouped(b.Messages))
		}
		table.Flush()
	}
	if r := s.Restored; r != nil {
		fmt.Fprintf(w, "\nRESTORED from the backup of %s\n%s\n", r.Backup.Local().Format(time.DateTime), uncertainty(r))
	}
	for i, p := range s.Paused {
		if i == 0 {
			fmt.Fprintln(w, "\nPAUSED")
		}
		what := strings.TrimSpace(string(p.Scope.Kind) + " " + p.Scope.Name)
		fmt.Fprintf(w, "%s since %s: %s\n", what, p.Since.Local().Format(time.DateTime), p.Reason)
	}
}
