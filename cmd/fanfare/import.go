package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare/internal/cli/bulkfile"
	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) importCommand() *cobra.Command {
	command := &cobra.Command{Use: "import", Short: "Import subscriptions, subscribers, templates or other systems' records in bulk"}
	command.AddCommand(c.importSubscriptions(), c.importSubscribers(), c.importNotifyTemplates(), c.importNotifyBC())
	return command
}

func (c *cli) importSubscribers() *cobra.Command {
	i := importing{format: "ndjson", what: "subscribers"}
	command := &cobra.Command{
		Use: "subscribers FILE|-", Short: "Import subscribers from NDJSON",
		Long: `Import subscribers from NDJSON. Each line describes one subscriber with its addresses
and, optionally, an id. An invalid line does not stop the import. If all lines have
ids, it is safe to import the same file again. Each address belongs to one subscriber.

Invalid lines are written to FILE.errors with their line numbers and the reasons.
Correct them in that file, and import it. If the import is interrupted, run the same
command again to continue.

Exit code 2: some lines were rejected.`,
		Example: `  fanfare import subscribers people.ndjson
  echo '{"id":"ada","addresses":[{"kind":"mail","address":"ada@example.com"}]}' | fanfare import subscribers -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return c.importFile(command, &i, args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&i.errors, "errors", "", "file for invalid lines (default: FILE.errors; none for standard input)")
	flags.BoolVar(&i.restart, "restart", false, "start from the beginning and ignore the progress of an earlier run")
	return command
}

func (c *cli) importSubscriptions() *cobra.Command {
	i := importing{what: "subscriptions"}
	command := &cobra.Command{
		Use: "subscriptions FILE|-", Short: "Import subscriptions from NDJSON or CSV",
		Long: `Import subscriptions from NDJSON, with one subscription per line, or from CSV, with the
column names in the first row. An invalid line does not stop the import. It is safe to
import the same file again.

CSV columns: id, topic, channel, to, subscriber, filter, rule, locale, time_zone,
state, cadence, title and description. The columns params, data and attributes contain
JSON objects; params.NAME, data.NAME and attributes.NAME contain single values. Empty
cells are treated as missing, and empty rows are skipped. A JSON number, list, object,
true, false or quoted string keeps its type; any other value is text.

Invalid lines are written to FILE.errors with their line numbers and the reasons.
Correct them in that file, and import it. The progress is stored in FILE.progress. After
Ctrl-C, a lost connection or a full disk, run the same command again to continue. Lines
that were stored just before the connection was lost are counted as updated.

Exit code 2: some lines were rejected.`,
		Example: `  fanfare import subscriptions people.ndjson
  fanfare import subscriptions people.csv --topic earthquakes --channel mail
  fanfare import subscriptions people.csv.errors
  zcat people.ndjson.gz | fanfare import subscriptions -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return c.importFile(command, &i, args[0]) },
	}
	flags := command.Flags()
	flags.StringVar(&i.format, "format", "", "format: ndjson or csv (default: from the file name, otherwise ndjson)")
	flags.StringVar(&i.preset.Topic, "topic", "", "topic for CSV rows that have none")
	flags.StringVar(&i.preset.Channel, "channel", "", "channel for CSV rows that have none")
	flags.StringVar(&i.errors, "errors", "", "file for invalid lines (default: FILE.errors; none for standard input)")
	flags.BoolVar(&i.restart, "restart", false, "start from the beginning and ignore the progress of an earlier run")
	return command
}

// importFile runs an import command.
func (c *cli) importFile(command *cobra.Command, i *importing, name string) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	i.cli, i.api = c, api
	return i.run(command.Context(), name)
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

// source opens a file as chunks: at its beginning, or where an earlier run ended.
func (i *importing) source(in io.Reader, name string) (bulkfile.ChunkReader, error) {
	table := strings.EqualFold(filepath.Ext(strings.TrimSuffix(name, ".errors")), ".csv")
	if i.format == "" {
		i.format = "ndjson"
		if table {
			i.format = "csv"
		}
	}
	begin := bufio.NewReaderSize(in, 256<<10)
	head, _ := begin.Peek(4) // fewer are no mark
	in = begin
	if err := noText(head, name); err != nil {
		return nil, err
	}
	switch {
	case table && i.what == "subscribers":
		return nil, &fanfare.Error{Code: fanfare.Invalid, File: name, Message: "subscribers are imported from NDJSON, but the file is CSV",
			Hint: "to import a table with a topic and a channel, use fanfare import subscriptions, which also creates the subscribers"}
	case i.format == "csv":
		table, err := bulkfile.NewCSV(in, i.preset)
		if err != nil {
			return nil, err
		}
		if i.bad != nil {
			i.bad.Header, i.bad.Preset = table.Header, bulkfile.Presets(i.preset)
		}
		if i.state.Offset > 0 {
			table.ContinueAt(io.NewSectionReader(i.journal.file, i.state.Offset, i.size-i.state.Offset), i.state.Position)
		}
		return table, nil
	case i.format != "ndjson":
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("unknown format %q", i.format), Hint: "use ndjson or csv"}
	case i.preset.Topic != "" || i.preset.Channel != "":
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "--topic and --channel apply to CSV only", Hint: "specify both on each line of the NDJSON file"}
	}
	if i.state.Offset > 0 {
		in = io.NewSectionReader(i.journal.file, i.state.Offset, i.size-i.state.Offset)
	}
	return bulkfile.NewNDJSON(in, i.state.Position), nil
}

// noText says what to do with a file that is no text, by how it begins; nil is a text.
func noText(head []byte, name string) error {
	wrong := &fanfare.Error{Code: fanfare.Invalid, File: name}
	switch string(head) {
	case "PK\x03\x04", "\xd0\xcf\x11\xe0":
		wrong.Message, wrong.Hint = "the file is a spreadsheet or an archive", "save the table as CSV in UTF-8 and import that file"
		return wrong
	}
	if bytes.HasPrefix(head, []byte("\x1f\x8b")) {
		wrong.Message, wrong.Hint = "the file is compressed", "decompress the file: zcat FILE | fanfare import ... -"
		return wrong
	}
	return nil
}

// printBadLines prints each with its reason, to standard error.
func (c *cli) printBadLines(bad []client.LineError, total int64) {
	for _, b := range bad {
		fmt.Fprintf(c.err, "line %d: %v\n", b.Line, b.Error.Err())
	}
	if more := total - int64(len(bad)); more > 0 {
		fmt.Fprintf(c.err, "and %s more\n", terminal.Grouped(more))
	}
}
