package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) suppressionCommand() *cobra.Command {
	command := &cobra.Command{Use: "suppression", Short: "Show and lift suppressions of addresses",
		Long: `Show and lift suppressions. Nobody can subscribe a suppressed address or write to
it. The list has keyed hashes alone, so that it can be asked for an address, and not
listed.`}
	command.AddCommand(c.suppressionGet(), c.suppressionDelete())
	return command
}

func (c *cli) suppressionGet() *cobra.Command {
	return &cobra.Command{
		Use: "get ADDRESS", Short: "Tell whether an address is suppressed, since when and why", Example: "  fanfare suppression get ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			s, err := api.Suppression(command.Context(), args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(s)
			}
			fmt.Fprintf(c.out, "%s is suppressed since %s: %s\n", s.Address, s.At.Local().Format(time.DateTime), s.Reason)
			return nil
		},
	}
}

func (c *cli) suppressionDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete ADDRESS", Short: "Let an address get messages again", Example: "  fanfare suppression delete ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			return api.LiftSuppression(command.Context(), args[0])
		},
	}
}
