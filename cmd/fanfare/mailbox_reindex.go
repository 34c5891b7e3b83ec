package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/cli/terminal"
)

func (c *cli) mailboxReindexCommand() *cobra.Command {
	var all, wait bool
	command := &cobra.Command{
		Use: "reindex [ADDRESS]...", Short: "Index the messages of mailboxes again",
		Long: `Index the messages of mailboxes again, and wait until that is done. Without an address
and without --all, the command only shows the state of the search index. Searches give the
same results meanwhile, but read more messages. --all needs a key for all services.`,
		Example: "  fanfare mailbox reindex\n  fanfare mailbox reindex ada@example.com\n  fanfare mailbox reindex --all --wait=false",
		RunE: func(command *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "--all and addresses exclude each other", Hint: "give one of them"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			ctx := command.Context()
			queued := 0
			if all {
				queued, err = c.reindex(func(cursor string) (client.Reindexing, error) { return api.ReindexAllMailboxes(ctx, cursor) })
			}
			for _, address := range args {
				n := 0
				n, err = c.reindex(func(cursor string) (client.Reindexing, error) { return api.ReindexMailbox(ctx, address, cursor) })
				if queued += n; err != nil {
					break
				}
			}
			if err != nil {
				return err
			}
			if (all || len(args) > 0) && wait {
				if err := c.awaitIndex(ctx, api, int64(queued)); err != nil {
					return err
				}
			}
			index, err := api.MailboxSearchIndex(ctx)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(index)
			}
			c.printSearchIndex(&index, time.Now())
			return nil
		},
	}
	command.Flags().BoolVar(&all, "all", false, "all mailboxes of all services")
	command.Flags().BoolVar(&wait, "wait", true, "wait until the messages are indexed")
	return command
}

// reindex makes all requests for a mailbox or for all, and returns the number of messages.
func (c *cli) reindex(part func(cursor string) (client.Reindexing, error)) (queued int, err error) {
	bar := c.newBar("queueing", "messages", 0)
	defer bar.End()
	for cursor := ""; ; {
		done, err := part(cursor)
		if err != nil {
			return queued, err
		}
		queued += done.Queued
		bar.Set(0, int64(queued))
		if cursor = done.Next; cursor == "" {
			return queued, nil
		}
	}
}

// awaitIndex returns when no message waits for the index. Messages that arrive meanwhile are waited for, too.
func (c *cli) awaitIndex(ctx context.Context, api *client.Client, queued int64) error {
	bar := c.newBar("indexing", "messages", queued)
	defer bar.End()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		index, err := api.MailboxSearchIndex(ctx)
		if err != nil || index.Waiting == 0 {
			return err
		}
		done := max(0, queued-int64(index.Waiting))
		bar.Set(done, done)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printSearchIndex prints the state of the index.
func (c *cli) printSearchIndex(index *client.SearchIndex, now time.Time) {
	switch {
	case !index.Enabled:
		c.say("the search index is off (mailbox_search_index)")
	case index.Waiting == 0:
		c.say("all messages are indexed")
	default:
		text := terminal.Grouped(int64(index.Waiting)) + " messages wait for the search index"
		if !index.Since.IsZero() {
			text += fmt.Sprintf("; some have waited since %s (%s)", index.Since.Local().Format(time.DateTime), now.Sub(index.Since).Round(time.Second))
		}
		c.say(text)
	}
}
