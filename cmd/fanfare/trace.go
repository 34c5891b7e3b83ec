package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) traceCommand() *cobra.Command {
	var subscriber string
	var query client.DeliveryQuery
	command := &cobra.Command{
		Use: "trace EVENT | trace --subscriber ADDRESS", Short: "Trace an event or a recipient",
		Long: `Trace an event: the time at which it left each stage, and the number and states of its
messages. With --recipient or --state, the command shows individual deliveries with all
their attempts. With --subscriber, it shows all messages to one subscriber. EVENT is the
id that fanfare publish printed, or the id that the sender assigned.`,
		Example: `  fanfare trace evt-20261120-1001
  fanfare trace evt-20261120-1001 --recipient ada@example.com
  fanfare trace evt-20261120-1001 --state failed --limit 1000
  fanfare trace --subscriber ada@example.com`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if (len(args) == 1) == (subscriber != "") {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "the event is missing", Hint: "pass an event, or a subscriber with --subscriber"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			ctx := command.Context()
			if subscriber != "" {
				list, err := api.History(ctx, subscriber, query.Limit)
				if err != nil {
					return err
				}
				return c.printDeliveries(client.DeliveryPage{Deliveries: list})
			}
			if query.Recipient != "" || query.State != "" || query.Cursor != "" {
				page, err := api.Deliveries(ctx, args[0], query)
				if err != nil {
					return err
				}
				return c.printDeliveries(page)
			}
			b, err := api.Event(ctx, args[0])
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(b)
			}
			c.printBroadcast(b)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&subscriber, "subscriber", "", "address or id of a subscriber")
	flags.StringVar(&query.Recipient, "recipient", "", "show only deliveries to this address or subscriber")
	flags.StringVar(&query.State, "state", "", "show only deliveries in this state, for example failed")
	flags.IntVar(&query.Limit, "limit", 100, "maximum number of deliveries, up to 1000")
	flags.StringVar(&query.Cursor, "cursor", "", "cursor of the next page, as printed by the previous call")
	return command
}

func (c *cli) printBroadcast(b fanfare.Broadcast) {
	table := c.newTable()
	fmt.Fprintf(table, "event\t%s\t(%s %s)\n", b.Event, b.Source, b.SourceID)
	for _, name := range slices.Sorted(maps.Keys(b.Extensions)) {
		fmt.Fprintf(table, "  %s\t%s\t\n", name, b.Extensions[name])
	}
	fmt.Fprintf(table, "%s\t%s lane\n", whatOf(b), b.Lane)
	fmt.Fprintf(table, "state\t%s\t%s\n", b.State, b.Reason)
	if b.Kind != fanfare.KindMessage && b.Kind != fanfare.KindDigest {
		fmt.Fprintf(table, "matched\t%s\tsubscriptions\n", terminal.Grouped(b.Matched))
		if a := b.Audience; a != nil {
			fmt.Fprintf(table, "audience\t%s\t%s more are not in it\n", terminal.Short(a.Filter), terminal.Grouped(a.Outside))
		}
	}
	fmt.Fprintf(table, "messages\t%s\t%s\n", terminal.Grouped(b.Messages), countsText(b.Counts))
	for i := range b.Gathered {
		g := &b.Gathered[i]
		fmt.Fprintf(table, "gathered\t%s\t%s\n", terminal.Grouped(g.Recipients), gatheredText(g))
	}
	for i := range b.Waits {
		w := &b.Waits[i]
		messages := ""
		if w.Messages > 0 {
			messages = terminal.Grouped(w.Messages)
		}
		fmt.Fprintf(table, "wait\t%s\t%s\n", messages, waitText(w))
	}
	if b.Inbox != nil {
		fmt.Fprintf(table, "inbox\t%s\t%s\n", terminal.Grouped(b.Inbox.Stored), inboxText(b.Inbox))
	}
	if b.ApprovedBy != "" {
		fmt.Fprintf(table, "approved\t%s\t\n", b.ApprovedBy)
	}
	if rate := speed(&b); rate != "" {
		fmt.Fprintf(table, "rate\t%s\t%s\n", rate, endText(&b, time.Now()))
	}
	for _, s := range []struct {
		name string
		at   time.Time
	}{
		{"received", b.Stages.Received}, {"kept", b.Stages.Kept}, {"matched", b.Stages.Matched}, {"frozen", b.Stages.Frozen},
		{"first", b.Stages.First}, {"last", b.Stages.Last}, {"completed", b.Stages.Completed},
	} {
		switch {
		case s.at.IsZero():
			fmt.Fprintf(table, "%s\t-\t\n", s.name)
		case s.name == "received":
			fmt.Fprintf(table, "%s\t%s\t\n", s.name, s.at.Local().Format("2006-01-02 15:04:05.000"))
		default:
			fmt.Fprintf(table, "%s\t+%s\t\n", s.name, s.at.Sub(b.Stages.Received).Round(10*time.Microsecond))
		}
	}
	table.Flush()
}

// inboxText describes the messages of a broadcast in mailboxes.
func inboxText(n *fanfare.InboxCounts) string {
	text := terminal.Grouped(n.Read) + " read"
	if !n.RecalledAt.IsZero() {
		text += fmt.Sprintf(", %s recalled at %s", terminal.Grouped(n.Recalled), n.RecalledAt.Local().Format(time.DateTime))
	}
	if n.Expired > 0 {
		text += fmt.Sprintf(", %s expired", terminal.Grouped(n.Expired))
	}
	if !n.ExpiresAt.IsZero() {
		text += ", expires at " + n.ExpiresAt.Local().Format(time.DateTime)
	}
	return text
}

// whatOf says which topic an event is of, or that it is a message.
func whatOf(b fanfare.Broadcast) string {
	switch b.Kind {
	case fanfare.KindDigest:
		return "digest\t" + b.Service + " " + cadenceText(b.Digest.Cadence, b.Digest.Zone) + ", due " + b.Digest.Due.Local().Format(time.DateTime)
	case fanfare.KindMessage:
		if b.Reference == "" {
			return "message\t" + b.Service
		}
		return "message\t" + b.Service + " (" + b.Reference + ")"
	}
	return "topic\t" + b.Service + "/" + b.Topic
}

func topicOf(d fanfare.Delivery) string {
	switch d.Kind {
	case fanfare.KindMessage:
		return "(message)"
	case fanfare.KindDigest:
		return fmt.Sprintf("(digest of %d)", len(d.Events))
	}
	return d.Topic
}

func (c *cli) printDeliveries(page client.DeliveryPage) error {
	if c.json {
		return c.printJSON(page)
	}
	for i := range page.Gathered {
		fmt.Fprintln(c.out, "waits for a digest:", strings.TrimPrefix(gatheredText(&page.Gathered[i]), "wait for "))
	}
	if len(page.Deliveries) == 0 {
		if len(page.Gathered) == 0 {
			fmt.Fprintln(c.out, "no deliveries")
		}
		return nil
	}
	table := c.newTable()
	fmt.Fprintln(table, "DELIVERY\tEVENT\tTOPIC\tADDRESS\tSTATE\tATTEMPT\tAT\tANSWER")
	for _, d := range page.Deliveries {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\t\t%s\n", d.ID, d.Event, topicOf(d), d.Address, d.State, waitsText(d.Waits))
		for _, a := range d.Attempts {
			answer := terminal.Short(a.Text)
			if a.Code != 0 {
				answer = strconv.Itoa(a.Code) + " " + answer
			}
			if a.Relay != "" {
				answer += " (" + a.Relay + ")"
			}
			if !a.NextAt.IsZero() {
				answer += ", next at " + a.NextAt.Local().Format(time.TimeOnly)
			}
			fmt.Fprintf(table, "\t\t\t\t%s\t%d\t%s\t%s\n", a.Status, a.Number, a.At.Local().Format("2006-01-02 15:04:05.000"), answer)
		}
		for _, s := range []struct {
			name string
			at   time.Time
		}{{"read", d.ReadAt}, {"removed by the recipient", d.RemovedAt}, {"recalled", d.RecalledAt}, {"expired", d.ExpiredAt}} {
			if !s.at.IsZero() {
				fmt.Fprintf(table, "\t\t\t\t%s\t\t%s\t\n", s.name, s.at.Local().Format(time.DateTime))
			}
		}
	}
	table.Flush()
	if page.Next != "" {
		fmt.Fprintf(c.out, "more: --cursor %s\n", page.Next)
	}
	return nil
}
