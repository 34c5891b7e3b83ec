package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) reportCommand() *cobra.Command {
	command := &cobra.Command{Use: "report", Short: "Report on what the server has", Args: cobra.NoArgs}
	command.AddCommand(c.reportConditions())
	return command
}

func (c *cli) reportConditions() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use: "conditions [TOPIC]", Short: "List the conditions that cost every event the most",
		Long: `List the conditions to which no index leads, the dearest first: every event of the
topic is held against them. NS is about how long an event takes for one, in
nanoseconds; MET is how many of some recent events met it.

One more part that an index answers makes a condition cheap, such as an equality, a
range, or a text that is sought.`,
		Example: `  fanfare report conditions
  fanfare report conditions earthquakes --limit 100
  fanfare report conditions --json | jq '.topics[] | select(.over)'`,
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: c.completeFirst("topics"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			topic := ""
			if len(args) > 0 {
				topic = args[0]
			}
			report, err := api.ReportConditions(command.Context(), topic, limit)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(report)
			}
			c.printConditions(&report)
			return nil
		},
	}
	command.Flags().IntVar(&limit, "limit", 20, "how many to list")
	return command
}

func (c *cli) printConditions(report *client.ConditionReport) {
	t := c.newTable()
	fmt.Fprintln(t, "TOPIC\tSUBSCRIPTIONS\tUNINDEXED\tAN EVENT TAKES\tBUDGET\tEVENTS")
	for _, one := range report.Topics {
		over := ""
		if one.Over {
			over = " (over)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\t%s\t%s\n", one.Topic, grouped(int64(one.Subscriptions)), grouped(int64(one.Unindexed)),
			time.Duration(one.NsPerEvent), over, time.Duration(one.BudgetNs), grouped(one.Events))
	}
	t.Flush()
	if len(report.Conditions) == 0 {
		fmt.Fprintln(c.out, "\nan index leads to every condition")
		return
	}
	fmt.Fprintln(t, "\nNS\tSUBSCRIPTIONS\tMET\tTOPIC\tCONDITION\tWHY")
	for _, one := range report.Conditions {
		condition, met := one.Filter, fmt.Sprintf("%d of %d", one.Met, one.Tried)
		if one.Rule != "" {
			condition, met = "rule "+one.Rule, "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", grouped(one.NsPerEvent), grouped(int64(one.Subscriptions)), met, one.Topic, short(condition), one.Reason)
	}
	t.Flush()
	if report.More > 0 {
		fmt.Fprintf(c.out, "and %s more: --limit\n", grouped(int64(report.More)))
	}
}
