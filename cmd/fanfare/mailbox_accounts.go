package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/cli/terminal"
	"fanfare.dev/fanfare/internal/config"
)

func (c *cli) mailboxListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List mailboxes",
		Long: `List mailboxes. A mailbox is in the list from its first message or login on. Messages of
broadcasts can wait for a mailbox that is not in the list yet.`,
		Example: "  fanfare mailbox list --service news", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			var all []client.Mailbox
			for m, err := range api.Mailboxes(command.Context()) {
				if err != nil {
					return err
				}
				all = append(all, m)
			}
			if c.json {
				return c.printJSON(all)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ADDRESS\tSERVICE\tCREATED\tSIZE\tMAXIMUM\tSTATE")
			for i := range all {
				m := &all[i]
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Address, m.Service, dateOr(m.CreatedAt, "-"), sizeText(m.Quota.Bytes), limitText(m.Quota.MaxBytes), mailboxState(m))
			}
			table.Flush()
			return nil
		},
	}
}

func sizeText(bytes int64) string { return config.Size(bytes).String() }

func limitText(bytes int64) string {
	if bytes == 0 {
		return "-"
	}
	return sizeText(bytes)
}

func mailboxState(m *client.Mailbox) string {
	if m.Disabled {
		return "disabled"
	}
	return "enabled"
}

func (c *cli) printMailbox(m *client.Mailbox) error {
	if c.json {
		return c.printJSON(m)
	}
	table := c.newTable()
	fmt.Fprintf(table, "mailbox\t%s\t%s\n", m.Address, m.Service)
	fmt.Fprintf(table, "subscriber\t%s\t\n", m.Subscriber)
	fmt.Fprintf(table, "state\t%s\t\n", mailboxState(m))
	fmt.Fprintf(table, "created\t%s\t\n", dateOr(m.CreatedAt, "-"))
	fmt.Fprintf(table, "size\t%s\tof %s\n", sizeText(m.Quota.Bytes), orUnlimited(m.Quota.MaxBytes, limitText(m.Quota.MaxBytes)))
	fmt.Fprintf(table, "messages\t%s\tof %s\n", terminal.Grouped(m.Quota.Messages), orUnlimited(m.Quota.MaxMessages, terminal.Grouped(m.Quota.MaxMessages)))
	for i := range m.Folders {
		f := &m.Folders[i]
		fmt.Fprintf(table, "folder\t%s\t%s, %s unread, %s\n", terminal.Short(f.Name), terminal.Amount(f.Messages, "message", "messages"), terminal.Grouped(f.Unread), sizeText(f.Bytes))
	}
	table.Flush()
	return nil
}

// orUnlimited returns the text of a limit, which 0 switches off.
func orUnlimited(limit int64, text string) string {
	if limit == 0 {
		return "unlimited"
	}
	return text
}

func (c *cli) mailboxShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ADDRESS", Short: "Show a mailbox with its folders and its quota",
		Long: `Show a mailbox with its folders and its quota. The messages that channels store do not
count in the quota.`,
		Example: "  fanfare mailbox show ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			m, err := api.Mailbox(command.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printMailbox(&m)
		},
	}
}

func (c *cli) mailboxCreateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "create ADDRESS...", Short: "Create mailboxes",
		Long: `Create mailboxes. If nobody has an address, the subscriber is created, too. A mailbox
that exists does not change.`,
		Example: "  fanfare mailbox create ada@example.com", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, address := range args {
				m, created, err := api.CreateMailbox(command.Context(), address)
				if err != nil {
					return err
				}
				if created {
					c.say("created " + m.Address)
				} else {
					c.say(m.Address + " exists")
				}
			}
			return nil
		},
	}
}

func (c *cli) mailboxQuotaCommand() *cobra.Command {
	var size string
	var messages int64
	command := &cobra.Command{
		Use: "quota ADDRESS", Short: "Set the quota of a mailbox",
		Long: `Set the quota of a mailbox. A limit that is not given does not change; 0 means no limit.
The quota of new mailboxes is the setting mailbox_quota. The messages that channels store
do not count.`,
		Example: "  fanfare mailbox quota ada@example.com --max-size 2GB --max-messages 100000\n  fanfare mailbox quota ada@example.com --max-size 0", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			var change client.MailboxChange
			if command.Flags().Changed("max-size") {
				n, err := config.ParseSize(size)
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("--max-size: %q is not a size", size), Hint: "write it as 500MB, 2GB or 0"}
				}
				change.MaxBytes = &n
			}
			if command.Flags().Changed("max-messages") {
				change.MaxMessages = &messages
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			if _, err = api.ChangeMailbox(command.Context(), args[0], change); err != nil {
				return err
			}
			c.say("changed " + args[0])
			return nil
		},
	}
	command.Flags().StringVar(&size, "max-size", "", "maximum size of all messages, for example 2GB; 0 means no limit")
	command.Flags().Int64Var(&messages, "max-messages", 0, "maximum number of messages; 0 means no limit")
	command.MarkFlagsOneRequired("max-size", "max-messages")
	return command
}

func (c *cli) mailboxDisableCommand(disable bool) *cobra.Command {
	verb, long := "enable", "Enable disabled mailboxes: their owners can log in, and mail is delivered to them."
	if disable {
		verb, long = "disable", "Disable mailboxes: nobody can log in, and neither mail servers nor channels can deliver\nto them. Deliveries fail with \"the account is disabled\". The messages stay."
	}
	return &cobra.Command{
		Use: verb + " ADDRESS...", Short: strings.ToUpper(verb[:1]) + verb[1:] + " mailboxes", Long: long,
		Example: "  fanfare mailbox " + verb + " ada@example.com", Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			for _, address := range args {
				if _, err := api.ChangeMailbox(command.Context(), address, client.MailboxChange{Disabled: &disable}); err != nil {
					return err
				}
				c.say(verb + "d " + address)
			}
			return nil
		},
	}
}

func (c *cli) mailboxRemoveCommand() *cobra.Command {
	var sure bool
	command := &cobra.Command{
		Use: "remove ADDRESS --yes", Short: "Remove a mailbox with all its messages",
		Long: `Remove a mailbox with all its messages and app passwords. The subscriber stays, and the
next message creates a new mailbox; to prevent this, disable the mailbox instead. Removal
cannot be undone and requires --yes.`,
		Example: "  fanfare mailbox remove ada@example.com --yes", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if !sure {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "removing the mailbox of " + args[0] + " cannot be undone", Hint: "run this command again with --yes"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := api.RemoveMailbox(command.Context(), args[0]); err != nil {
				return err
			}
			c.say("removed " + args[0])
			return nil
		},
	}
	command.Flags().BoolVar(&sure, "yes", false, "confirm that all messages will be removed permanently")
	return command
}
