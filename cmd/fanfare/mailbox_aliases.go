package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) mailboxAliasCommand() *cobra.Command {
	command := &cobra.Command{Use: "alias", Short: "Manage the aliases of a mailbox",
		Long: `Add, list and remove the aliases of a mailbox. An alias is a further address: mail to it
is delivered to the mailbox, and the owner may send mail with it. Nobody can log in with
it.`}
	command.AddCommand(c.aliasAddCommand(), c.aliasListCommand(), c.aliasRemoveCommand())
	return command
}

func (c *cli) aliasAddCommand() *cobra.Command {
	return &cobra.Command{
		Use: "add ADDRESS ALIAS...", Short: "Add aliases to a mailbox",
		Long: `Add aliases to a mailbox. An alias belongs to one mailbox, and must not be the address of
a subscriber. Upper and lower case do not matter.`,
		Example: "  fanfare mailbox alias add ada@example.com sales@example.com", Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, alias := range args[1:] {
				made, added, err := api.AddMailboxAlias(command.Context(), args[0], alias)
				if err != nil {
					return err
				}
				if added {
					c.say("added " + made.Address)
				} else {
					c.say(made.Address + " exists")
				}
			}
			return nil
		},
	}
}

func (c *cli) aliasListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list ADDRESS", Short: "List the aliases of a mailbox", Example: "  fanfare mailbox alias list ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all, err := api.MailboxAliases(command.Context(), args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(all)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ALIAS\tCREATED")
			for i := range all {
				fmt.Fprintf(table, "%s\t%s\n", all[i].Address, dateOr(all[i].CreatedAt, "-"))
			}
			table.Flush()
			return nil
		},
	}
}

func (c *cli) aliasRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove ADDRESS ALIAS...", Short: "Remove aliases of a mailbox",
		Long:    "Remove aliases of a mailbox. Mail to them is refused afterwards. Messages in the\nmailbox stay.",
		Example: "  fanfare mailbox alias remove ada@example.com sales@example.com", Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, alias := range args[1:] {
				if err := api.RemoveMailboxAlias(command.Context(), args[0], alias); err != nil {
					return err
				}
				c.say("removed " + alias)
			}
			return nil
		},
	}
}
