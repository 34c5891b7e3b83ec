package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (c *cli) secretCommand() *cobra.Command {
	return &cobra.Command{
		Use: "secret CHANNEL URL", Short: "Show the secret with which a receiver verifies webhooks",
		Long: `Show the secrets with which a receiver verifies webhooks (Standard Webhooks), or the
public keys if the channel signs with Ed25519. The newest is on the first line. Each
receiver has its own secret, derived from the secret of the channel. Share it only with
the operator of the receiver.

The command needs a key with the scope secrets or admin.`,
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
