package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) relayCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "relay", Short: "Show, drain and restore relays",
		Long: `Show the relays of mail channels, and drain or restore a relay without applying a
document. A drained relay finishes the transactions that are in progress. It remains
drained after a restart.`,
	}
	list := &cobra.Command{
		Use: "list [SERVICE/CHANNEL]", Short: "List relays and their state", Example: "  fanfare relay list\n  fanfare relay list news/mail", Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			status, err := api.Status(command.Context())
			if err != nil {
				return err
			}
			channels := status.Channels[:0]
			for _, ch := range status.Channels {
				if len(args) == 0 || args[0] == ch.Service+"/"+ch.Name || args[0] == ch.Name && ch.Service == c.service {
					channels = append(channels, ch)
				}
			}
			if len(args) > 0 && len(channels) == 0 {
				return &fanfare.Error{Code: fanfare.NotFound, Message: "unknown channel " + args[0], Hint: "use SERVICE/CHANNEL; fanfare channel list shows the channels"}
			}
			if c.json {
				return c.printJSON(channels)
			}
			c.printRelays(channels)
			return nil
		},
	}
	command.AddCommand(list,
		c.relayAction("drain", "Stop sending through a relay", "drained", (*client.Client).Pause),
		c.relayAction("restore", "Resume sending through a drained relay", "restored", (*client.Client).Resume))
	return command
}

func (c *cli) relayAction(name, summary, done string, do func(*client.Client, context.Context, fanfare.Scope, string) error) *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use: name + " SERVICE/CHANNEL RELAY", Short: summary, Args: cobra.ExactArgs(2),
		Example: fmt.Sprintf("  fanfare relay %s news/mail smtp.example.net:587 --reason \"maintenance until 6\"", name),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			channel := args[0]
			if c.service != "" && !strings.Contains(channel, "/") {
				channel = c.service + "/" + channel
			}
			scope := fanfare.Scope{Kind: fanfare.ScopeRelay, Name: channel + "/" + args[1]}
			if err := do(api, command.Context(), scope, reason); err != nil {
				return err
			}
			if !c.json {
				fmt.Fprintln(c.out, done, scope.Name)
			}
			return nil
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "reason, shown by fanfare status")
	return command
}

func (c *cli) printRelays(channels []client.ChannelStatus) {
	table := c.newTable()
	fmt.Fprintln(table, "CHANNEL\tRELAY\tNODE\tSTATE\tWEIGHT\tSHARE\tCONNECTIONS\tACCEPTED\tERRORS\tP50\tP99\tLAST ERROR")
	for _, ch := range channels {
		for _, r := range ch.Relays {
			fmt.Fprintf(table, "%s/%s\t%s\t%s\t%s\t%d\t%.0f%%\t%d\t%s\t%s\t%s\t%s\t%s\n", ch.Service, ch.Name, r.Name, cmp.Or(r.Node, "-"), r.State, r.Weight, 100*r.Share,
				r.Connections, terminal.Grouped(r.Accepted), terminal.Grouped(r.Errors), tookMillis(r.P50Millis), tookMillis(r.P99Millis), terminal.Short(r.LastError))
		}
	}
	table.Flush()
}

// tookMillis is a time for a table, nothing where none is known.
func tookMillis(millis float64) string {
	switch {
	case millis == 0:
		return ""
	case millis < 10:
		return fmt.Sprintf("%.1f ms", millis)
	}
	return fmt.Sprintf("%.0f ms", millis)
}
