package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) importCommand() *cobra.Command {
	var format string
	var preset client.Subscription
	command := &cobra.Command{Use: "import", Short: "Import many subscriptions at once"}
	subscriptions := &cobra.Command{
		Use: "subscriptions FILE|-", Short: "Import subscriptions from NDJSON or CSV",
		Long: `Import subscriptions: NDJSON with one subscription on each line, or CSV whose
first row names the columns (id, topic, channel, to, filter, rule, locale,
time_zone, params.NAME, data.NAME, attributes.NAME). Each one is put by itself: a
bad line is printed with its reason and does not stop the others. Importing the
same file again is safe.

Exit code 2: some lines were refused.`,
		Example: `  fanfare import subscriptions people.ndjson
  fanfare import subscriptions people.csv --topic earthquakes --channel mail
  zcat people.ndjson.gz | fanfare import subscriptions -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			in, size, err := c.open(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			if format == "" {
				format = "ndjson"
				if strings.EqualFold(filepath.Ext(args[0]), ".csv") {
					format = "csv"
				}
			}
			line := func(n int) int { return n }
			var body io.Reader = in
			switch {
			case format == "csv":
				table, err := newCSV(in, preset)
				if err != nil {
					return err
				}
				defer table.stop()
				body, line, size = table, table.line, 0
			case format != "ndjson":
				return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", format), Hint: "use ndjson or csv"}
			case preset.Topic != "" || preset.Channel != "":
				return &fanfare.Error{Code: fanfare.Invalid, Message: "--topic and --channel are for CSV", Hint: "of NDJSON, each line names both"}
			}
			return c.importFrom(command, api, body, size, line)
		},
	}
	flags := subscriptions.Flags()
	flags.StringVar(&format, "format", "", "ndjson or csv (default: by the file's name, else ndjson)")
	flags.StringVar(&preset.Topic, "topic", "", "CSV: topic of rows that name none")
	flags.StringVar(&preset.Channel, "channel", "", "CSV: channel of rows that name none")
	command.AddCommand(subscriptions)
	return command
}

// open opens a file, or standard input for "-", and says how long it is; 0 is unknown.
func (c *cli) open(name string) (io.ReadCloser, int64, error) {
	if name == "-" {
		return io.NopCloser(c.in), 0, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return f, 0, err
	}
	return f, info.Size(), nil
}

func (c *cli) importFrom(command *cobra.Command, api *client.Client, body io.Reader, size int64, line func(int) int) error {
	began := time.Now()
	bar := c.newBar("importing", "subscriptions", size)
	sum, err := api.ImportSubscriptions(command.Context(), body, func(p client.Progress) { bar.set(p.Bytes, p.Lines) })
	bar.end()
	if err != nil {
		return err
	}
	for i := range sum.Errors {
		sum.Errors[i].Line = line(sum.Errors[i].Line)
	}
	c.printBadLines(sum.Errors, sum.Failed)
	if c.json {
		if err := c.printJSON(sum); err != nil {
			return err
		}
	} else {
		took := time.Since(began)
		total := sum.Created + sum.Updated + sum.Failed
		fmt.Fprintf(c.out, "%s created, %s updated, %s failed, in %s (%s/s)\n", grouped(sum.Created), grouped(sum.Updated), grouped(sum.Failed),
			took.Round(time.Millisecond), grouped(int64(float64(total)/took.Seconds())))
	}
	if sum.Failed > 0 {
		return &someFailed{grouped(sum.Failed) + " lines were refused"}
	}
	return nil
}

// printBadLines prints each with its reason, to standard error.
func (c *cli) printBadLines(bad []client.LineError, total int64) {
	for _, b := range bad {
		fmt.Fprintf(c.err, "line %d: %v\n", b.Line, b.Error.Err())
	}
	if more := total - int64(len(bad)); more > 0 {
		fmt.Fprintf(c.err, "and %s more\n", grouped(more))
	}
}
