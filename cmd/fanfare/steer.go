package main

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) approveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "approve EVENT", Short: "Approve a broadcast",
		Long: `Approve a broadcast that is held.

If a broadcast has more messages than the hold_above limit of its topic or service, it
is held after matching: its recipients are known, but nothing is sent. To list held
broadcasts, run fanfare status. The API key needs the scope approve. To reject a
broadcast, run fanfare cancel --broadcast EVENT.`,
		Example: `  fanfare approve evt-20261120-1001`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := api.Approve(command.Context(), args[0]); err != nil {
				return err
			}
			c.say("approved " + args[0])
			return nil
		},
	}
}

// say prints a line for people.
func (c *cli) say(line string) {
	if !c.json {
		fmt.Fprintln(c.out, line)
	}
}

func (c *cli) rateCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "rate", Short: "Set the rate of a broadcast or a channel",
		Long: `Set the rate of a broadcast or a channel. The rate takes effect within a second and
remains in effect after a restart. RATE is, for example, 100/s, 1000/min, 5000/h or
unlimited.`,
	}
	command.AddCommand(
		c.setRateCommand("broadcast", "EVENT RATE", "Set the rate of a broadcast across all channels",
			"The rates of the channels also apply. To remove the rate of the broadcast, pass\nunlimited.",
			`  fanfare rate broadcast evt-20261120-1001 100/s
  fanfare rate broadcast evt-20261120-1001 unlimited`),
		c.setRateCommand("channel", "SERVICE/CHANNEL RATE|configured", "Override the configured rate of a channel",
			"fanfare status and fanfare apply show the override. To remove it, pass configured as\nthe rate.",
			`  fanfare rate channel news/email 500/s
  fanfare rate channel news/email configured`),
	)
	return command
}

func (c *cli) setRateCommand(kind, args, short, about, example string) *cobra.Command {
	return &cobra.Command{
		Use: kind + " " + args, Short: short, Long: short + ".\n\n" + about, Example: example, Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			scope := fanfare.Scope{Kind: fanfare.ScopeKind(kind), Name: args[0]}
			if err := api.SetRate(command.Context(), scope, args[1]); err != nil {
				return err
			}
			c.say(strings.Join([]string{"rate of", kind, args[0], "is", args[1]}, " "))
			return nil
		},
	}
}

// rateText is the rate that a channel may have, and whether somebody has set it.
func rateText(limit string, byHand bool) string {
	if byHand {
		return limit + " (by hand)"
	}
	return limit
}

// takes says how long messages take at the rate of their channel.
func takes(seconds int64) string {
	if seconds == 0 {
		return ""
	}
	return (time.Duration(seconds) * time.Second).String()
}

// try shows for whom the event of a file would be.
func (p *publishing) try(command *cobra.Command, file string) error {
	text, err := p.cli.readInput(file)
	if err != nil {
		return err
	}
	data, err := oneValue(text)
	if err != nil {
		return inFile(file, err)
	}
	p.options.CloudEvents = saysCloudEvent(data)
	run, err := p.api.TryPublish(command.Context(), p.topic, data, p.options)
	if err != nil {
		return inFile(file, err)
	}
	if p.cli.json {
		return p.cli.printJSON(run)
	}
	p.cli.printDryRun(&run)
	return nil
}

// try shows what the message would set off.
func (s *sending) try(command *cobra.Command, api *client.Client) error {
	run, err := api.TrySend(command.Context(), s.message)
	if err != nil {
		return err
	}
	c := s.cli
	if c.json {
		return c.printJSON(run)
	}
	fmt.Fprintf(c.out, "%s would be sent over %s (%s)", terminal.Amount(int64(run.Messages), "message", "messages"), run.Channel, orElse(run.Rate, "unlimited"))
	if took := takes(run.Seconds); took != "" {
		fmt.Fprint(c.out, ", in "+took)
	}
	fmt.Fprintln(c.out)
	if run.Hold != "" {
		fmt.Fprintln(c.out, "it "+run.Hold)
	}
	for _, e := range run.Errors {
		fmt.Fprintf(c.err, "recipient %d: %v\n", e.Index, e.Error.Err())
	}
	if len(run.Errors) > 0 {
		return &someFailed{terminal.Grouped(int64(len(run.Errors))) + " recipients would be rejected"}
	}
	return nil
}
