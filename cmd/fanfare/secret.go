package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) secretCommand() *cobra.Command {
	return &cobra.Command{
		Use: "secret CHANNEL URL", Short: "Show what a receiver of webhooks verifies them with",
		Long: `Show what a receiver of webhooks verifies them with: a secret of Standard Webhooks,
or a public key where the channel signs by Ed25519, one to a line, the newest first.
Each receiver has its own, derived from that of the channel; tell a secret only to
who runs the receiver.

It needs a key with the scope secrets (or admin).`,
		Example: `  fanfare secret hook https://receiver.example.org/prices
  fanfare secret hook https://receiver.example.org/prices --json`,
		Args: cobra.ExactArgs(2), ValidArgsFunction: c.completeFirst("channels"),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			secret, err := api.ReceiverSecret(command.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(secret)
			}
			for _, one := range secret.Secrets {
				fmt.Fprintln(c.out, one)
			}
			return nil
		},
	}
}
