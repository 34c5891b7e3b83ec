package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/bulkfile"
	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// sending is what one send command does.
type sending struct {
	cli              *cli
	message          client.MessageRequest
	content          client.MessageContent
	recipients, data string
	attach, images   []string
	options          client.SendOptions
}

func (c *cli) sendCommand() *cobra.Command {
	s := sending{cli: c}
	dryRun := false
	command := &cobra.Command{
		Use: "send --to ADDRESS --channel NAME", Short: "Send a message to specific recipients",
		Long: `Send a message to one recipient (--to or --subscriber) or to a list (--recipients),
whether or not they have subscribed. A list is a CSV file with column names in its first
row, or an NDJSON file with {"to", "data"} on each line. A CSV file has the column to or
subscriber; all other columns are data of the recipient, available in the template as
{{ sub.COLUMN }}.

The content is a template, or --subject with --text and --html, which can contain
Liquid. To read a text from a file, use @FILE. --data is the event data for the
template: JSON, a file, or - for standard input.

--attach attaches a file. --image adds an image that the HTML shows as
<img src="cid:NAME">. All recipients get the same files, which can have up to 2 MiB in
total.

Invalid recipients in a list are reported and skipped. With --all-or-nothing, the
command fails if any recipient is invalid. With --wait, it returns once all messages are
settled.

Exit code 2: some recipients were rejected or, with --wait, some messages were not
delivered.`,
		Example: `  fanfare send --to ada@example.com --channel email --template receipt --data '{"order":4711}' --wait
  fanfare send --to ada@example.com --channel email --subject 'Works on Sunday' --text @works.txt
  fanfare send --to ada@example.com --channel email --template receipt --attach receipt-4711.pdf
  fanfare send --recipients members.csv --channel email --template invitation --reference spring-party`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return s.run(command, dryRun) },
	}
	flags := command.Flags()
	flags.StringVar(&s.message.To, "to", "", "address of the recipient")
	flags.StringVar(&s.message.Subscriber, "subscriber", "", "subscriber id of the recipient, instead of an address")
	flags.StringVar(&s.recipients, "recipients", "", "file with a list of recipients (.csv or NDJSON), or - for NDJSON on standard input")
	flags.StringVar(&s.message.Channel, "channel", "", "channel over which to send")
	flags.StringVar(&s.message.Template, "template", "", "name of a template, or name@version")
	flags.StringVar(&s.content.Subject, "subject", "", "subject, instead of a template")
	flags.StringVar(&s.content.Text, "text", "", "text, or @FILE")
	flags.StringVar(&s.content.HTML, "html", "", "HTML, or @FILE")
	flags.StringArrayVar(&s.attach, "attach", nil, "file to attach (repeatable)")
	flags.StringArrayVar(&s.images, "image", nil, "image for --html, as NAME=FILE for cid:NAME (repeatable)")
	flags.StringVar(&s.data, "data", "", "event data for the template: a JSON object, a file, or -")
	flags.StringVar(&s.message.Reference, "reference", "", "your own reference, with which you can find the message later")
	flags.TimeVar(&s.message.NotBefore, "not-before", time.Time{}, []string{time.RFC3339}, "send time, at most 366 days ahead, for example 2026-11-20T08:00:00Z")
	flags.TimeVar(&s.message.Expires, "expires", time.Time{}, []string{time.RFC3339}, "time after which nothing is sent")
	flags.StringVar(&s.message.Lane, "lane", "", "lane: urgent, normal or bulk (default: urgent, bulk for a list)")
	flags.BoolVar(&s.message.AllOrNothing, "all-or-nothing", false, "send nothing if any recipient in the list is invalid")
	flags.StringVar(&s.options.Key, "idempotency-key", "", "idempotency key: if the command is repeated with this key within an hour, the message is not sent again")
	flags.DurationVar(&s.options.Wait, "wait", 0, "wait until all messages are settled, for at most this time (30s without a value)")
	flags.BoolVar(&dryRun, "dry-run", false, "show what would be sent, without sending it")
	flags.Lookup("wait").NoOptDefVal = maxWait.String()
	command.MarkFlagsMutuallyExclusive("to", "subscriber", "recipients")
	command.MarkFlagsOneRequired("to", "subscriber", "recipients")
	command.MarkFlagsMutuallyExclusive("template", "subject")
	command.MarkFlagsOneRequired("template", "subject")
	return command
}

// maxWait is how long the server lets somebody wait at a time.
const maxWait = 30 * time.Second

func (s *sending) run(command *cobra.Command, dryRun bool) error {
	api, err := s.cli.connect()
	if err != nil {
		return err
	}
	if err := s.read(); err != nil {
		return err
	}
	if dryRun {
		return s.try(command, api)
	}
	m, err := api.Send(command.Context(), s.message, s.options)
	if err != nil {
		return err
	}
	return s.print(m)
}

// read gathers the message from flags and files.
func (s *sending) read() (err error) {
	c := s.cli
	if s.message.Template == "" {
		for _, part := range []*string{&s.content.Text, &s.content.HTML} {
			if name, isFile := strings.CutPrefix(*part, "@"); isFile {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				*part = string(text)
			}
		}
		s.message.Content = &s.content
	}
	if err := s.readFiles(); err != nil {
		return err
	}
	if s.data != "" {
		text := []byte(s.data)
		if !strings.HasPrefix(strings.TrimSpace(s.data), "{") {
			in, _, err := c.open(s.data)
			if err != nil {
				return err
			}
			defer in.Close()
			if text, err = io.ReadAll(in); err != nil {
				return err
			}
		}
		if !json.Valid(text) {
			return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/data", Message: "is not valid JSON", Hint: `pass JSON, for example --data '{"order":4711}', or the name of a file`}
		}
		s.message.Data = text
	}
	if s.recipients != "" {
		s.message.Recipients, err = c.readRecipients(s.recipients)
	}
	return err
}

// readFiles reads what goes with the message.
func (s *sending) readFiles() error {
	add := func(path, cid string) error {
		content, err := os.ReadFile(path)
		if err == nil && len(content) > client.MaxFilesBytes {
			err = &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("%s is %d bytes long; at most %d are allowed", path, len(content), client.MaxFilesBytes), Hint: "link to the file, or attach it to a template"}
		}
		s.message.Attachments = append(s.message.Attachments, client.MessageFile{Name: filepath.Base(path), Content: content, CID: cid})
		return err
	}
	for _, path := range s.attach {
		if err := add(path, ""); err != nil {
			return err
		}
	}
	for _, image := range s.images {
		name, path, ok := strings.Cut(image, "=")
		if !ok {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "--image " + image + " has no name", Hint: "use --image logo=logo.png, and <img src=\"cid:logo\"> in the HTML"}
		}
		if err := add(path, name); err != nil {
			return err
		}
	}
	return nil
}

// print shows what came of the message.
func (s *sending) print(m client.Message) error {
	c := s.cli
	if c.json {
		if err := c.printJSON(m); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.out, "%s %s", m.ID, m.State)
		if m.Recipients != 1 || len(m.Errors) > 0 {
			fmt.Fprintf(c.out, ", %s recipients: %s", terminal.Grouped(int64(m.Recipients)), countsText(m.Counts))
		}
		fmt.Fprintln(c.out)
		if d := m.Delivery; d != nil && len(d.Attempts) > 0 {
			last := d.Attempts[len(d.Attempts)-1]
			answer := terminal.Short(last.Text)
			if last.Code != 0 {
				answer = strconv.Itoa(last.Code) + " " + answer
			}
			fmt.Fprintf(c.out, "  %s: %s\n", d.Address, answer)
		}
	}
	for _, e := range m.Errors {
		fmt.Fprintf(c.err, "recipient %d: %v\n", e.Index, e.Error.Err())
	}
	waited := s.options.Wait > 0
	missed := m.Counts.Settled() - m.Counts[fanfare.Accepted] - m.Counts[fanfare.Delivered]
	switch {
	case len(m.Errors) > 0:
		return &someFailed{terminal.Amount(int64(len(m.Errors)), "recipient was rejected", "recipients were rejected")}
	case waited && missed > 0:
		return &someFailed{terminal.Amount(missed, "message was not delivered", "messages were not delivered")}
	case waited && !m.Settled():
		return &someFailed{"some messages are not settled yet: to follow them, run fanfare trace " + m.ID}
	}
	return nil
}

// readRecipients reads the list of a message: CSV, or NDJSON.
func (c *cli) readRecipients(name string) ([]client.To, error) {
	in, _, err := c.open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if strings.EqualFold(filepath.Ext(name), ".csv") {
		return bulkfile.RecipientRows(in)
	}
	return bulkfile.RecipientLines(in)
}
