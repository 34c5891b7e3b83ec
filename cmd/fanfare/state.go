package main

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"
)

func (c *cli) stateCommand() *cobra.Command {
	var limit int
	command := &cobra.Command{
		Use: "state TOPIC [KEY]", Short: "Show the state of a topic",
		Long: `Show the last event of each key of a topic, or of one key. The functions crosses,
crosses_above and crosses_below compare the next event of a key with this event.

A topic has keys if its setting key refers to a data field, for example key: symbol.`,
		Example: `  fanfare state quotes
  fanfare state quotes MSFT
  fanfare state quotes --limit 1000 --json | jq -r '.states[].key'`,
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: c.completeFirst("topics"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if len(args) == 2 {
				state, err := api.State(command.Context(), args[0], args[1])
				if err != nil {
					return err
				}
				return c.printJSON(state)
			}
			page, err := api.States(command.Context(), args[0], "", limit)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(page)
			}
			t := c.newTable()
			fmt.Fprintln(t, "KEY\tEVENT\tRECEIVED\tDATA")
			for _, one := range page.States {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", one.Key, one.Event, one.At.Format(time.RFC3339), terminal.Short(string(one.Data)))
			}
			t.Flush()
			if more := page.Keys - len(page.States); more > 0 {
				fmt.Fprintf(c.out, "%s (use --limit)\n", terminal.Amount(int64(more), "more key", "more keys"))
			}
			return nil
		},
	}
	command.Flags().IntVar(&limit, "limit", 100, "maximum number of keys, up to 1000")
	return command
}
