package main

import (
	"time"

	"github.com/spf13/cobra"
)

func (c *cli) recallCommand() *cobra.Command {
	return &cobra.Command{
		Use: "recall EVENT", Short: "Recall a broadcast from mailboxes",
		Long: `Recall a broadcast from the mailboxes of its recipients.

Messages that their recipients have not opened are removed within seconds. Messages for
mailboxes that have not been stored yet are cancelled. Messages that were opened stay,
and so do messages in channels with another driver than inbox. A recall cannot be undone.
To see the numbers, run fanfare trace EVENT.`,
		Example: `  fanfare recall evt-20261120-1001`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := api.Recall(command.Context(), args[0]); err != nil {
				return err
			}
			c.say("recalled " + args[0])
			return nil
		},
	}
}

func (c *cli) expireCommand() *cobra.Command {
	var at time.Time
	var never bool
	command := &cobra.Command{
		Use: "expire EVENT --at TIME | --never", Short: "Set the time at which a broadcast is removed from mailboxes",
		Long: `Set the time at which the messages of a broadcast are removed from mailboxes, whether
they were opened or not. A time in the past removes them within seconds. The default is
the setting keep of the channel.`,
		Example: `  fanfare expire evt-20261120-1001 --at 2026-12-24T18:00:00Z
  fanfare expire evt-20261120-1001 --never`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := api.Expire(command.Context(), args[0], at); err != nil {
				return err
			}
			if never {
				c.say(args[0] + " does not expire")
			} else {
				c.say(args[0] + " expires at " + at.Local().Format(time.DateTime))
			}
			return nil
		},
	}
	command.Flags().TimeVar(&at, "at", time.Time{}, []string{time.RFC3339}, "time, for example 2026-12-24T18:00:00Z")
	command.Flags().BoolVar(&never, "never", false, "the messages do not expire")
	command.MarkFlagsMutuallyExclusive("at", "never")
	command.MarkFlagsOneRequired("at", "never")
	return command
}
