package main

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) matchCommand() *cobra.Command {
	var sample int
	var audience string
	command := &cobra.Command{
		Use: "match TOPIC FILE|-", Short: "Show who would receive an event, without publishing it",
		Long: `Show who would receive an event if it were published now: the number of matching
subscriptions, the number of messages per channel, and a sample of the recipients. The
file, or standard input, contains the data of one event. Nothing is published, stored or
sent.`,
		Example: `  fanfare match earthquakes event.json
  echo '{"mag":6.1,"place":"Alaska"}' | fanfare match earthquakes - --sample 50`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: c.completeFirst("topics"),
		RunE: func(command *cobra.Command, args []string) error {
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
	// Scripts that were written when the flag was required still pass it.
	command.Flags().Bool("dry-run", true, "has no effect; accepted for compatibility")
	if err := command.Flags().MarkHidden("dry-run"); err != nil {
		panic(err) // the flag is defined one line above
	}
	command.Flags().StringVar(&audience, "audience", "", "audience filter: a CEL condition over subscriber and sub")
	command.Flags().IntVar(&sample, "sample", 10, "number of subscriptions to show, at most 1000")
	return command
}

func (c *cli) printDryRun(run *client.DryRun) {
	fmt.Fprintf(c.out, "%s, %s would be sent\n", terminal.Amount(int64(run.Matched), "subscription matches", "subscriptions match"), terminal.Amount(int64(run.Messages), "message", "messages"))
	if run.Hold != "" {
		fmt.Fprintln(c.out, "it "+run.Hold)
	}
	if run.Outside > 0 {
		fmt.Fprintf(c.out, "%s more match, but are not in the audience\n", terminal.Grouped(int64(run.Outside)))
	}
	t := c.newTable()
	for i, one := range run.Channels {
		if i == 0 {
			fmt.Fprintln(t, "\nCHANNEL\tMESSAGES\tRATE\tTAKES")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", one.Channel, terminal.Grouped(int64(one.Messages)), orElse(one.Rate, "unlimited"), takes(one.Seconds))
	}
	t.Flush()
	for i, one := range run.Gathered {
		if i == 0 {
			fmt.Fprintln(t, "\nLATER, IN THE DIGEST\tRECIPIENTS\tDUE")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", cadenceText(one.Cadence, one.Zone), terminal.Grouped(int64(one.Recipients)), one.Due.Local().Format(time.DateTime))
	}
	t.Flush()
	for i, one := range run.Rules {
		if i == 0 {
			fmt.Fprintln(t, "\nRULE\tSUBSCRIPTIONS")
		}
		fmt.Fprintf(t, "%s\t%s\n", orElse(one.Rule, "(own filter)"), terminal.Grouped(int64(one.Matched)))
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
