package main

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) destinationsCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "destinations", Short: "List and resume unhealthy destinations",
		Long: `List the destinations of a channel that are unhealthy or have waiting messages. A
destination is the domain of an email address, or the host and port of a webhook. If a
destination keeps refusing messages, it is suspended for increasingly long pauses.
Once it works again, resume it: the waiting messages are sent within a second.`,
	}
	list := &cobra.Command{
		Use: "list SERVICE/CHANNEL", Short: "List unhealthy destinations", Example: "  fanfare destinations list news/mail", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, channel, err := c.connectTo(args[0])
			if err != nil {
				return err
			}
			all := []client.Destination{}
			for one, err := range api.Destinations(command.Context(), channel) {
				if err != nil {
					return err
				}
				all = append(all, one)
			}
			if c.json {
				return c.printJSON(all)
			}
			c.printDestinations(all)
			return nil
		},
	}
	resume := &cobra.Command{
		Use: "resume SERVICE/CHANNEL DESTINATION", Short: "Resume sending to a destination",
		Long: `Resume sending to a destination, and reset the limits that Fanfare derived from its
refusals. If the destination still refuses messages, it is suspended again, for
longer.`,
		Example: "  fanfare destinations resume news/mail example.org", Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, channel, err := c.connectTo(args[0])
			if err != nil {
				return err
			}
			if err := api.ResumeDestination(command.Context(), channel, args[1]); err != nil {
				return err
			}
			if !c.json {
				fmt.Fprintln(c.out, "resumed", args[1])
			}
			return nil
		},
	}
	command.AddCommand(list, resume)
	return command
}

// connectTo is connect for the service of a channel: of service/channel, or of the
// one that is meant anyway.
func (c *cli) connectTo(name string) (api *client.Client, channel string, err error) {
	api, err = c.connect()
	if err != nil {
		return nil, "", err
	}
	service, channel, both := strings.Cut(name, "/")
	if !both {
		return api, name, nil
	}
	return api.ForService(service), channel, nil
}

func (c *cli) printDestinations(all []client.Destination) {
	if len(all) == 0 {
		fmt.Fprintln(c.out, "all destinations are healthy")
		return
	}
	table := c.newTable()
	fmt.Fprintln(table, "DESTINATION\tSTATE\tUNTIL\tFAILURES\tLIMIT\tWAITING\tLAST REPLY")
	for i := range all {
		d := &all[i]
		until := ""
		if !d.Until.IsZero() {
			until = d.Until.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", d.Name, d.State, until, d.Failures, uptake(d), terminal.Grouped(int64(d.Aside)+d.Postponed), terminal.Short(d.LastReply))
	}
	table.Flush()
}

// uptake is how much goes to a destination, as its refusals have shown.
func uptake(d *client.Destination) string {
	var all []string
	if d.RatePerSecond > 0 {
		all = append(all, fmt.Sprintf("%.3g/s", d.RatePerSecond))
	}
	if d.AtOnce > 0 {
		all = append(all, fmt.Sprintf("%d concurrent", d.AtOnce))
	}
	return strings.Join(all, ", ")
}
