package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
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

func (c *cli) exportCommand() *cobra.Command {
	command := &cobra.Command{Use: "export", Short: "Export subscriptions or subscribers"}
	command.AddCommand(c.exportSubscriptions(), c.exportSubscribers())
	return command
}

func (c *cli) exportSubscribers() *cobra.Command {
	var output string
	command := &cobra.Command{
		Use: "subscribers", Short: "Export subscribers as NDJSON",
		Long: `Export all subscribers of a service with their addresses, in the format that fanfare
import subscribers reads. Import the subscribers before the subscriptions that refer to
them. With --output, the command writes to a temporary file and renames it once it is
complete.`,
		Example: `  fanfare export subscribers --output people.ndjson
  fanfare export subscribers | fanfare import subscribers - --server https://other.example.org`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			return c.export(output, "subscribers", func(out io.Writer) (int64, error) {
				lines, err := api.ExportSubscriberLines(command.Context())
				if err != nil {
					return 0, err
				}
				return copyLines(out, lines)
			})
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "file to write to (default: standard output)")
	return command
}

// export writes to a file, which appears as a whole, or to standard output.
func (c *cli) export(output, what string, write func(io.Writer) (int64, error)) error {
	if output == "" {
		_, err := write(c.out)
		return err
	}
	count, err := writeWhole(output, write)
	if err == nil {
		fmt.Fprintf(c.err, "wrote %s %s to %s\n", terminal.Grouped(count), what, output)
	}
	return err
}

// copyLines copies and closes lines, and counts them.
func copyLines(out io.Writer, lines io.ReadCloser) (int64, error) {
	defer lines.Close()
	counter := &lineCounter{out: out}
	_, err := io.Copy(counter, lines)
	return counter.lines, err
}

func (c *cli) exportSubscriptions() *cobra.Command {
	var format, output string
	var query client.SubscriptionQuery
	command := &cobra.Command{
		Use: "subscriptions", Short: "Export subscriptions as NDJSON or CSV",
		Long: `Export the subscriptions of a service, except those that have ended, in the format
that fanfare import subscriptions reads. Importing the file into an empty service
restores the subscriptions; ids that were assigned by Fanfare are replaced by new
ones. With --output, the command writes to a temporary file and renames it once it is
complete.`,
		Example: `  fanfare export subscriptions > people.ndjson
  fanfare export subscriptions --topic earthquakes --format csv --output people.csv
  fanfare export subscriptions | fanfare import subscriptions - --server https://other.example.org`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !slices.Contains([]string{"ndjson", "csv"}, format) {
				return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", format), Hint: "use ndjson or csv"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			write := func(out io.Writer) (count int64, err error) {
				if format == "csv" {
					return exportTable(out, api.ExportSubscriptions(command.Context(), query))
				}
				lines, err := api.ExportLines(command.Context(), query)
				if err != nil {
					return 0, err
				}
				return copyLines(out, lines)
			}
			return c.export(output, "subscriptions", write)
		},
	}
	flags := command.Flags()
	flags.StringVar(&format, "format", "ndjson", "format: ndjson or csv")
	flags.StringVarP(&output, "output", "o", "", "file to write to (default: standard output)")
	flags.StringVar(&query.Topic, "topic", "", "export only subscriptions to this topic")
	flags.StringVar(&query.Channel, "channel", "", "export only subscriptions that use this channel")
	flags.StringVar(&query.Subscriber, "subscriber", "", "export only subscriptions of this subscriber (id or address)")
	return command
}

// writeWhole lets a file appear only when all of it is there.
func writeWhole(path string, write func(io.Writer) (int64, error)) (count int64, err error) {
	f, err := os.OpenFile(path+".part", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600) // it has addresses
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(f, 256<<10)
	count, err = write(out)
	for _, step := range []func() error{out.Flush, f.Sync, f.Close} {
		if failed := step(); err == nil {
			err = failed
		}
	}
	if err != nil {
		_ = os.Remove(path + ".part") // the error tells what there is to tell
		return 0, err
	}
	return count, os.Rename(path+".part", path)
}

// lineCounter counts what goes through it.
type lineCounter struct {
	out   io.Writer
	lines int64
}

// Write passes b on.
func (w *lineCounter) Write(b []byte) (int, error) {
	w.lines += int64(bytes.Count(b, []byte{'\n'}))
	return w.out.Write(b)
}

// exportColumns are those of an exported table: params, data and attributes are
// JSON objects, so that every value comes back as what it is.
var exportColumns = append(slices.Clone(bulkfile.Fields), bulkfile.Objects...)

func exportTable(w io.Writer, all func(func(client.Subscription, error) bool)) (count int64, err error) {
	table := csv.NewWriter(w)
	if err := table.Write(exportColumns); err != nil {
		return 0, err
	}
	for s, err := range all {
		if err != nil {
			return count, err
		}
		record := []string{s.ID, s.Topic, s.Channel, s.To, s.Subscriber, s.Filter, s.Rule, s.Locale, s.TimeZone, s.State, s.Cadence, s.Title, s.Description, string(s.Params), string(s.Data), string(s.Attributes)}
		if err := table.Write(record); err != nil {
			return count, err
		}
		count++
	}
	table.Flush()
	return count, table.Error()
}
