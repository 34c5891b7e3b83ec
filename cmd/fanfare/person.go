package main

import (
	"fmt"
	"io"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
)

func (c *cli) personExport(n *noun) *cobra.Command {
	return &cobra.Command{
		Use: "export ID", Short: "Export all data of a subscriber as NDJSON",
		Example: "  fanfare subscriber export ada > ada.ndjson", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			lines, err := api.ExportSubscriber(command.Context(), args[0])
			if err != nil {
				return err
			}
			defer lines.Close()
			_, err = io.Copy(c.out, lines)
			return err
		},
	}
}

func (c *cli) personMerge(n *noun) *cobra.Command {
	var into string
	command := &cobra.Command{
		Use: "merge ID --into ID", Short: "Merge a subscriber into another",
		Long: `Merge a subscriber into another subscriber, which takes over its addresses,
subscriptions and history. A merge cannot be undone.`,
		Example: "  fanfare subscriber merge ada-2 --into ada", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			one, err := api.MergeSubscriber(command.Context(), args[0], into)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(one)
			}
			fmt.Fprintf(c.out, "subscriber %s was merged into %s\n", args[0], one.ID)
			return nil
		},
	}
	command.Flags().StringVar(&into, "into", "", "subscriber to merge into")
	if err := command.MarkFlagRequired("into"); err != nil {
		panic(err) // the flag stands above
	}
	return command
}

func (c *cli) personErase(n *noun) *cobra.Command {
	var suppress, sure bool
	command := &cobra.Command{
		Use: "erase ID --yes", Short: "Erase a subscriber and their history",
		Long: `Erase a subscriber: the addresses, the subscriptions, and all personal data in the
history and in messages. Counts remain. Erasure cannot be undone and requires --yes.
With --suppress, the addresses are added to the suppression list as keyed hashes.`,
		Example: "  fanfare subscriber erase ada --yes\n  fanfare subscriber erase ada --suppress --yes", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			if !sure {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "erasing " + args[0] + " cannot be undone", Hint: "to keep a copy, first export the data (fanfare subscriber export " + args[0] + "); then run this command again with --yes"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			erased, err := api.EraseSubscriber(command.Context(), args[0], suppress)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(erased)
			}
			fmt.Fprintf(c.out, "erased %s: %s, %s\n", args[0], terminal.Amount(erased.Deliveries, "delivery", "deliveries"), terminal.Amount(erased.Subscriptions, "subscription", "subscriptions"))
			return nil
		},
	}
	command.Flags().BoolVar(&suppress, "suppress", false, "add the addresses to the suppression list")
	command.Flags().BoolVar(&sure, "yes", false, "confirm that the data will be erased permanently")
	return command
}
