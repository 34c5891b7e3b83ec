package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

func (c *cli) auditCommand() *cobra.Command {
	var q client.AuditQuery
	var since time.Duration
	command := &cobra.Command{
		Use: "audit", Short: "Show the audit log",
		Long: `List the changes made through the API, newest first. Each entry has the time, the API
key, the action, the object and, for configuration, the previous value. The log
contains ids, but no addresses or secrets.`,
		Example: `  fanfare audit --service news --since 24h
  fanfare audit --kind topic --name story
  fanfare audit --by key-7 --action delete --json`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if since > 0 {
				q.Since = time.Now().Add(-since)
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			entries, err := readAudit(command, api, q)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(entries)
			}
			return c.printAudit(entries)
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.Key, "by", "", "show only changes made with this key, for example key-7")
	flags.StringVar(&q.Person, "person", "", "show only changes by this person of OpenID Connect, named as in key_name of the output of --json")
	flags.StringVar(&q.Action, "action", "", "show only this action, for example delete")
	flags.StringVar(&q.Kind, "kind", "", "show only changes to this kind of object, for example topic")
	flags.StringVar(&q.Name, "name", "", "show only changes to the object with this name or id")
	flags.DurationVar(&since, "since", 0, "show only changes from this period, for example 24h")
	flags.IntVar(&q.Limit, "limit", 50, "maximum number of entries")
	return command
}

// readAudit reads pages until there are as many entries as asked for.
func readAudit(command *cobra.Command, api *client.Client, q client.AuditQuery) ([]client.AuditEntry, error) {
	entries, most := []client.AuditEntry{}, q.Limit
	for {
		q.Limit = min(1000, most-len(entries))
		page, err := api.Audit(command.Context(), q)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Audit...)
		if page.Next == "" || len(entries) >= most {
			return entries, nil
		}
		q.Cursor = page.Next
	}
}

func (c *cli) printAudit(entries []client.AuditEntry) error {
	if len(entries) == 0 {
		fmt.Fprintln(c.out, "no changes")
		return nil
	}
	table := c.newTable()
	fmt.Fprintln(table, "WHEN\tKEY\tSERVICE\tWHAT\tDETAIL")
	for i := range entries {
		e := &entries[i]
		who := strings.TrimSpace(e.Key + " " + e.KeyName)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", e.At.Local().Format(time.DateTime), terminal.Short(who), e.Service,
			strings.TrimSpace(e.Action+" "+e.Kind+" "+e.Name), terminal.Short(detailOf(e)))
	}
	table.Flush()
	return nil
}

// detailOf joins what more there is to say about a change.
func detailOf(e *client.AuditEntry) string {
	var parts []string
	for _, f := range e.Fields {
		if f.Old == "" {
			parts = append(parts, f.Field+": "+f.New)
		} else {
			parts = append(parts, f.Field+": "+f.Old+" -> "+f.New)
		}
	}
	parts = append(parts, e.Changed...)
	for _, name := range slices.Sorted(maps.Keys(e.Counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", e.Counts[name], name))
	}
	return strings.Join(parts, ", ")
}
