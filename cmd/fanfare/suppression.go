package main

import (
	"fmt"
	"io"
	"time"

	"fanfare.dev/fanfare/internal/cli/bulkfile"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) suppressionCommand() *cobra.Command {
	command := &cobra.Command{Use: "suppression", Short: "Manage the suppression list",
		Long: `Show and change the suppression list. A suppressed address cannot be subscribed, and
messages to it are settled as suppressed. Erased addresses are stored only as keyed
hashes: you can check such an address, but the list does not show it.

With --all-services, commands use the list that applies to all services of the server.
This requires a key for all services.`}
	command.AddCommand(c.suppressionGet(), c.suppressionAdd(), c.suppressionList(), c.suppressionImport(), c.suppressionExport(), c.suppressionLift())
	return command
}

func allServicesFlag(command *cobra.Command, all *bool) {
	command.Flags().BoolVar(all, "all-services", false, "use the suppression list that applies to all services")
}

func (c *cli) suppressionGet() *cobra.Command {
	return &cobra.Command{
		Use: "get ADDRESS", Short: "Check whether an address is suppressed", Example: "  fanfare suppression get ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			s, err := api.Suppression(command.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printSuppression(&s)
		},
	}
}

func (c *cli) printSuppression(s *client.Suppression) error {
	if c.json {
		return c.printJSON(s)
	}
	fmt.Fprintf(c.out, "%s has been suppressed since %s: %s", s.Address, s.At.Local().Format(time.DateTime), s.Reason)
	if s.AllServices {
		fmt.Fprint(c.out, ", for all services")
	}
	if !s.Until.IsZero() {
		fmt.Fprintf(c.out, ", until %s", s.Until.Local().Format(time.DateTime))
	}
	if s.Source != "" {
		fmt.Fprintf(c.out, " (%s)", s.Source)
	}
	fmt.Fprintln(c.out)
	return nil
}

func (c *cli) suppressionAdd() *cobra.Command {
	var s client.Suppression
	var last time.Duration
	command := &cobra.Command{
		Use: "add ADDRESS", Short: "Suppress an address",
		Example: `  fanfare suppression add ada@example.com --source "requested by phone"
  fanfare suppression add ada@example.com --reason soft_bounces --for 720h`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if s.Address = args[0]; last > 0 {
				s.Until = time.Now().Add(last)
			}
			is, err := api.Suppress(command.Context(), s)
			if err != nil {
				return err
			}
			return c.printSuppression(&is)
		},
	}
	flags := command.Flags()
	flags.StringVar(&s.Reason, "reason", "manual", "reason: soft_bounces, imported, unsubscribed, hard_bounce, manual, complaint or erased")
	flags.StringVar(&s.Source, "source", "", "source of the entry")
	flags.DurationVar(&last, "for", 0, "duration, for example 720h (default: permanent)")
	allServicesFlag(command, &s.AllServices)
	return command
}

func (c *cli) suppressionList() *cobra.Command {
	var q client.SuppressionQuery
	var limit int
	command := &cobra.Command{
		Use: "list", Short: "List suppressed addresses, newest first", Example: "  fanfare suppression list --reason hard_bounce", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all := []client.Suppression{}
			for s, err := range api.Suppressions(command.Context(), q) {
				if err != nil {
					return err
				}
				if all = append(all, s); len(all) >= limit {
					break
				}
			}
			if c.json {
				return c.printJSON(all)
			}
			c.printSuppressions(all)
			return nil
		},
	}
	command.Flags().StringVar(&q.Reason, "reason", "", "show only entries with this reason")
	command.Flags().IntVar(&limit, "limit", 50, "maximum number of entries")
	allServicesFlag(command, &q.AllServices)
	return command
}

func (c *cli) printSuppressions(all []client.Suppression) {
	if len(all) == 0 {
		fmt.Fprintln(c.out, "no address is suppressed")
		return
	}
	table := c.newTable()
	fmt.Fprintln(table, "ADDRESS\tREASON\tSINCE\tUNTIL\tSOURCE")
	for i := range all {
		s := &all[i]
		address := s.Address
		if address == "" {
			address = "(forgotten)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", address, s.Reason, s.At.Local().Format(time.DateTime), dateOr(s.Until, "-"), s.Source)
	}
	table.Flush()
}

func (c *cli) suppressionLift() *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: "lift ADDRESS", Aliases: []string{"delete"}, Short: "Remove an address from the suppression list", Example: "  fanfare suppression lift ada@example.com", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if all {
				return api.LiftForAllServices(command.Context(), args[0])
			}
			return api.LiftSuppression(command.Context(), args[0])
		},
	}
	allServicesFlag(command, &all)
	return command
}

func (c *cli) suppressionExport() *cobra.Command {
	var q client.SuppressionQuery
	var format, output string
	command := &cobra.Command{
		Use: "export", Short: "Export the suppression list as NDJSON or CSV",
		Long: `Export the suppression list in the format that fanfare suppression import reads. Erased
addresses are exported as hashes, which only this server can use. With --output, the
command writes to a temporary file and renames it once it is complete.`,
		Example: `  fanfare suppression export --output suppressed.ndjson
  fanfare suppression export --reason hard_bounce --format csv > bounced.csv`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if format != "ndjson" && format != "csv" {
				return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", format), Hint: "use ndjson or csv"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			return c.export(output, "suppressions", func(out io.Writer) (int64, error) {
				if format == "csv" {
					return bulkfile.WriteSuppressions(out, api.Suppressions(command.Context(), q))
				}
				lines, err := api.ExportSuppressionLines(command.Context(), q)
				if err != nil {
					return 0, err
				}
				return copyLines(out, lines)
			})
		},
	}
	flags := command.Flags()
	flags.StringVar(&q.Reason, "reason", "", "show only entries with this reason")
	flags.StringVar(&format, "format", "ndjson", "format: ndjson or csv")
	flags.StringVarP(&output, "output", "o", "", "file to write to (default: standard output)")
	allServicesFlag(command, &q.AllServices)
	return command
}
