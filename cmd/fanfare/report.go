package main

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) reportCommand() *cobra.Command {
	command := &cobra.Command{Use: "report", Short: "Show reports", Args: cobra.NoArgs}
	command.AddCommand(c.reportConditions())
	return command
}

func (c *cli) reportConditions() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use: "conditions [TOPIC]", Short: "List the most expensive conditions",
		Long: `List the conditions that the index does not cover, the most expensive first. Each event
of the topic is evaluated against each of these conditions. NS is the approximate time
per event in nanoseconds, and MET is the number of recent events that met the condition.

To make a condition cheaper, add a part that the index covers, for example an equality,
a range or a text search.`,
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
	command.Flags().IntVar(&limit, "limit", 20, "maximum number of conditions")
	return command
}

func (c *cli) printConditions(report *client.ConditionReport) {
	t := c.newTable()
	fmt.Fprintln(t, "TOPIC\tSUBSCRIPTIONS\tUNINDEXED\tTIME PER EVENT\tBUDGET\tEVENTS")
	for _, one := range report.Topics {
		over := ""
		if one.Over {
			over = " (over)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s%s\t%s\t%s\n", one.Topic, terminal.Grouped(int64(one.Subscriptions)), terminal.Grouped(int64(one.Unindexed)),
			time.Duration(one.NsPerEvent), over, time.Duration(one.BudgetNs), terminal.Grouped(one.Events))
	}
	t.Flush()
	if len(report.Conditions) == 0 {
		fmt.Fprintln(c.out, "\nthe index covers all conditions")
		return
	}
	fmt.Fprintln(t, "\nNS\tSUBSCRIPTIONS\tMET\tTOPIC\tCONDITION\tWHY")
	for _, one := range report.Conditions {
		condition, met := one.Filter, fmt.Sprintf("%d of %d", one.Met, one.Tried)
		if one.Rule != "" {
			condition, met = "rule "+one.Rule, "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", terminal.Grouped(one.NsPerEvent), terminal.Grouped(int64(one.Subscriptions)), met, one.Topic, terminal.Short(condition), one.Reason)
	}
	t.Flush()
	if report.More > 0 {
		fmt.Fprintf(c.out, "%s more (use --limit)\n", terminal.Grouped(int64(report.More)))
	}
}
