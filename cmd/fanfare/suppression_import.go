package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"fanfare.dev/fanfare/internal/cli/bulkfile"
	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) suppressionImport() *cobra.Command {
	var preset client.Suppression
	var format string
	command := &cobra.Command{
		Use: "import FILE", Short: "Import addresses into the suppression list",
		Long: `Import addresses from a file into the suppression list. The file is NDJSON, as written
by fanfare suppression export, or CSV with the column names in the first row. The address
is in the column address, email or "email address" (in upper or lower case). The columns
reason, source and until are optional. Other columns and unknown reasons are ignored. An
invalid line does not stop the import. To read standard input, pass - as FILE.`,
		Example: `  fanfare suppression import suppressed.ndjson
  fanfare suppression import bounces.csv --reason hard_bounce --source "the old system"`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if !slices.Contains([]string{"", "ndjson", "csv"}, format) {
				return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", format), Hint: "use ndjson or csv"}
			}
			in := io.Reader(os.Stdin)
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error()}
				}
				defer func() { _ = f.Close() }() // it was read
				in = f
			}
			if preset.Source == "" && args[0] != "-" {
				preset.Source = args[0]
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			lines, rows, err := bulkfile.SuppressionLines(in, args[0], format, &preset)
			if err != nil {
				return err
			}
			sum, err := api.ImportSuppressions(command.Context(), lines, preset.AllServices, nil)
			_ = lines.Close() // rows is whole from here on
			if err != nil {
				return bulkfile.InTable(err, rows)
			}
			return c.printImported(&sum, rows)
		},
	}
	flags := command.Flags()
	flags.StringVar(&format, "format", "", "format: ndjson or csv (default: csv for a file name that ends in .csv)")
	flags.StringVar(&preset.Reason, "reason", "imported", "reason for lines that have none")
	flags.StringVar(&preset.Source, "source", "", "source for lines that have none (default: the file name)")
	allServicesFlag(command, &preset.AllServices)
	return command
}

func (c *cli) printImported(sum *client.SuppressionSummary, rows *bulkfile.TableRows) error {
	for i := range sum.Errors {
		sum.Errors[i].Line = rows.At(sum.Errors[i].Line)
	}
	c.printBadLines(sum.Errors, sum.Failed)
	if c.json {
		if err := c.printJSON(sum); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.out, "%s added, %s already present, %s failed\n", terminal.Grouped(sum.Added), terminal.Grouped(sum.Kept), terminal.Grouped(sum.Failed))
	}
	if sum.Failed > 0 {
		return &someFailed{terminal.Grouped(sum.Failed) + " lines were rejected"}
	}
	return nil
}
