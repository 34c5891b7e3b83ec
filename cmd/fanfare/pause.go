package main

import (
	"context"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) subscriptionPause(n *noun) *cobra.Command {
	command := c.nounAct(n, "pause", "Pause subscriptions", (*client.Client).PauseSubscription)
	command.Long = command.Short + `.

No messages are sent for a paused subscription until it is resumed. After the command
returns, no more messages are sent. Waiting messages are not sent, and neither are
events that occur during the pause.`
	return command
}

func (c *cli) subscriptionResume(n *noun) *cobra.Command {
	return c.nounAct(n, "resume", "Resume paused subscriptions", (*client.Client).ResumeSubscription)
}

// nounAct is a verb that things are named to.
func (c *cli) nounAct(n *noun, verb, short string, act func(*client.Client, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: verb + " ID...", Short: short, Example: n.example(verb, " "+n.sample), Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, ids []string) error {
			api, err := c.connectFor(n)
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := act(api, command.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
