package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) mailboxDNSCommand() *cobra.Command {
	return &cobra.Command{
		Use: "dns DOMAIN", Short: "Print the DNS records by which mail programs find the server",
		Long: `Print the DNS records by which mail programs find the server, as lines of a zone file. The
domain is the one of the mail addresses. The records follow from the settings of the
server: mail_host, public_url and the listeners. A record with the target "." says that
the server does not offer the service.`,
		Example: "  fanfare mailbox dns example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			records, err := api.MailboxDNS(command.Context(), args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(records)
			}
			table := c.newTable()
			for _, r := range records {
				fmt.Fprintf(table, "%s\tIN\t%s\t%s\n", r.Name, r.Type, r.Value)
			}
			table.Flush()
			return nil
		},
	}
}
