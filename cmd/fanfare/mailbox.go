package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/internal/cli/terminal"
)

func (c *cli) mailboxCommand() *cobra.Command {
	command := &cobra.Command{Use: "mailbox", Short: "Manage the mailboxes of subscribers",
		Long: `Manage the mailboxes of subscribers, which mail programs open over IMAP and send from
over SMTP.`}
	password := &cobra.Command{Use: "password", Short: "Manage the app passwords of a mailbox",
		Long: `Create, list and revoke the app passwords of a mailbox. A mail program logs in with the
address of the mailbox as its user name and an app password. Create one for each program,
so that you can revoke it alone.`}
	password.AddCommand(c.passwordCreateCommand(), c.passwordListCommand(), c.passwordRevokeCommand())
	command.AddCommand(password, c.mailboxAliasCommand(), c.mailboxListCommand(), c.mailboxShowCommand(), c.mailboxCreateCommand(), c.mailboxQuotaCommand(),
		c.mailboxDisableCommand(true), c.mailboxDisableCommand(false), c.mailboxRemoveCommand(),
		c.mailboxExportCommand(), c.mailboxImportCommand(), c.mailboxReindexCommand(), c.mailboxDNSCommand())
	return command
}

func (c *cli) passwordCreateCommand() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use: "create ADDRESS", Short: "Create an app password and print it",
		Long: `Create an app password of the mailbox of a subscriber and print it. The password is shown
only once. If the subscriber has no mailbox, it is created.`,
		Example: `  fanfare mailbox password create ada@example.com --name phone`, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			made, err := api.CreateAppPassword(command.Context(), args[0], name)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(made)
			}
			fmt.Fprintln(c.out, made.Password)
			fmt.Fprintf(c.err, "this is %s for the user name %s; it will not be shown again\n", made.ID, made.User)
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "", "name that tells the app passwords of a mailbox apart, such as phone")
	return command
}

func (c *cli) passwordListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list ADDRESS", Short: "List the app passwords of a mailbox", Example: "  fanfare mailbox password list ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all, err := api.AppPasswords(command.Context(), args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(all)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ID\tCREATED\tLAST USED\tNAME")
			for i := range all {
				p := &all[i]
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", p.ID, dateOr(p.CreatedAt, "-"), dateOr(p.UsedAt, "-"), terminal.Short(p.Name))
			}
			table.Flush()
			return nil
		},
	}
}

func (c *cli) passwordRevokeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "revoke ADDRESS ID...", Short: "Revoke app passwords of a mailbox", Example: "  fanfare mailbox password revoke ada@example.com app-1", Args: cobra.MinimumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, id := range args[1:] {
				if err := api.RevokeAppPassword(command.Context(), args[0], id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
