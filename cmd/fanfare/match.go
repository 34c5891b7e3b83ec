package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) matchCommand() *cobra.Command {
	var dryRun bool
	var sample int
	var audience string
	command := &cobra.Command{
		Use: "match TOPIC FILE|- --dry-run", Short: "Show for whom an event would be, without sending it",
		Long: `Show for whom an event would be, were it published now: how many subscriptions want
it, how many messages that makes over which channels, and some of them. The file, or
standard input, has the data of one event. Nothing is published, kept or sent.`,
		Example: `  fanfare match earthquakes event.json --dry-run
  echo '{"mag":6.1,"place":"Alaska"}' | fanfare match earthquakes - --dry-run --sample 50`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: c.completeFirst("topics"),
		RunE: func(command *cobra.Command, args []string) error {
			if !dryRun {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "match only shows for whom an event would be", Hint: "say so with --dry-run; fanfare publish sends it"}
			}
			text, err := c.readInput(args[1])
			if err != nil {
				return err
			}
			data, err := oneValue(text)
			if err != nil {
				return inFile(args[1], err)
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			run, err := api.DryRun(command.Context(), args[0], data, audience, sample)
			if err != nil {
				return inFile(args[1], err)
			}
			if c.json {
				return c.printJSON(run)
			}
			c.printDryRun(&run)
			return nil
		},
	}
	command.Flags().BoolVar(&dryRun, "dry-run", false, "must be given, so that nobody takes this for publish")
	command.Flags().StringVar(&audience, "audience", "", "only people who meet this: CEL over subscriber and sub")
	command.Flags().IntVar(&sample, "sample", 10, "how many subscriptions to name, at most 1000")
	return command
}

func (c *cli) printDryRun(run *client.DryRun) {
	fmt.Fprintf(c.out, "%s, %s would leave\n", amount(int64(run.Matched), "subscription wants it", "subscriptions want it"), amount(int64(run.Messages), "message", "messages"))
	if run.Hold != "" {
		fmt.Fprintln(c.out, "it "+run.Hold)
	}
	if run.Outside > 0 {
		fmt.Fprintf(c.out, "%s more want it and are not in the audience\n", grouped(int64(run.Outside)))
	}
	t := c.newTable()
	for i, one := range run.Channels {
		if i == 0 {
			fmt.Fprintln(t, "\nCHANNEL\tMESSAGES\tRATE\tTAKES")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", one.Channel, grouped(int64(one.Messages)), orElse(one.Rate, "unlimited"), takes(one.Seconds))
	}
	t.Flush()
	for i, one := range run.Gathered {
		if i == 0 {
			fmt.Fprintln(t, "\nLATER, IN THE DIGEST\tRECIPIENTS\tDUE")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", cadenceText(one.Cadence, one.Zone), grouped(int64(one.Recipients)), one.Due.Local().Format(time.DateTime))
	}
	t.Flush()
	for i, one := range run.Rules {
		if i == 0 {
			fmt.Fprintln(t, "\nRULE\tSUBSCRIPTIONS")
		}
		fmt.Fprintf(t, "%s\t%s\n", orElse(one.Rule, "(own filter)"), grouped(int64(one.Matched)))
	}
	t.Flush()
	for i, one := range run.Sample {
		if i == 0 {
			fmt.Fprintln(t, "\nSUBSCRIPTION\tSUBSCRIBER\tTO\tCHANNEL\tRULE")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", one.Subscription, one.Subscriber, one.To, one.Channel, one.Rule)
	}
	t.Flush()
}
