package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) sendsCommand() *cobra.Command {
	command := &cobra.Command{Use: "sends", Short: "Send messages to lists from CSV files, with an approval",
		Long: `Send messages to lists from CSV files. A send is created as a draft, gets its list, and is
submitted. A person who is not an author of it approves it, unless the service has the
setting send_approval: none. It is sent at once, or at its time.

To send to a short list without an approval, use fanfare send --recipients.`}
	command.AddCommand(c.sendsCreateCommand(), c.sendsChangeCommand(), c.sendsUploadCommand(), c.sendsRowsCommand(), c.sendsErrorsCommand(), c.sendsPreviewCommand(), c.sendsSubmitCommand(), c.sendsApproveCommand(),
		c.sendsStopCommand("pause", "Pause a send that is being sent", "paused", (*client.Client).PauseSend),
		c.sendsStopCommand("resume", "Resume a paused send", "resumed", (*client.Client).ResumeSend),
		c.sendsStopCommand("cancel", "Cancel a send that has not ended", "cancelled", (*client.Client).CancelSend),
		c.sendsListCommand(), c.sendsShowCommand(), c.sendsReportCommand(), c.sendsDeleteCommand())
	return command
}

func (c *cli) sendsCreateCommand() *cobra.Command {
	var in client.SendRequest
	var data, address, file string
	command := &cobra.Command{
		Use: "create --template NAME --channel NAME", Short: "Create a send as a draft",
		Long: `Create a send as a draft and print its id. With --recipients, upload its list as well, as
fanfare sends upload does.`,
		Example: `  fanfare sends create --template invitation --channel email --name "Spring party"
  fanfare sends create --template invitation --channel email --recipients members.csv --send-at 2026-12-01T08:00:00+01:00`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if data != "" {
				if in.Data, err = c.dataOf(data); err != nil {
					return err
				}
			}
			made, err := api.CreateSend(command.Context(), in)
			if err != nil {
				return err
			}
			if file == "" {
				return c.printSend(&made)
			}
			uploaded, err := c.uploadList(command.Context(), api, made.ID, address, file)
			if err != nil {
				fmt.Fprintf(c.err, "the draft %s has no list yet: correct the file, and run fanfare sends upload %s %s\n", made.ID, made.ID, file)
				return err
			}
			return c.printSend(&uploaded.Send)
		},
	}
	flags := command.Flags()
	flags.StringVar(&in.Name, "name", "", "name of the send")
	flags.StringVar(&in.Template, "template", "", "name of a template, or name@version")
	flags.StringVar(&in.Channel, "channel", "", "channel over which to send")
	flags.StringVar(&data, "data", "", "event data for the template: a JSON object, a file, or -")
	flags.TimeVar(&in.SendAt, "send-at", time.Time{}, []string{time.RFC3339}, "time to send, for example 2026-12-01T08:00:00+01:00 (default: as soon as it is approved)")
	flags.StringVar(&in.Lane, "lane", "", "lane: urgent, normal or bulk (default: bulk)")
	flags.StringVar(&in.Reference, "reference", "", "your own reference of its messages (default: the id of the send)")
	flags.BoolVar(&in.SkipInvalid, "skip-invalid", false, "send without the invalid rows of the list")
	flags.StringVar(&file, "recipients", "", "CSV file with the list")
	flags.StringVar(&address, "address", "", "name of the column with the addresses (default: to)")
	_ = command.MarkFlagRequired("template") // the flags exist
	_ = command.MarkFlagRequired("channel")
	return command
}

// dataOf returns the JSON in an argument, in a file, or of the standard input for "-".
func (c *cli) dataOf(data string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimSpace(data), "{") {
		return oneValue([]byte(data))
	}
	text, err := c.readInput(data)
	if err == nil {
		text, err = oneValue(text)
	}
	return text, inFile(data, err)
}

func (c *cli) sendsChangeCommand() *cobra.Command {
	var name, template, channel, data, at, lane, reference string
	var skip bool
	command := &cobra.Command{
		Use: "change SEND", Short: "Change a send that has not begun",
		Long: `Change a send that has not begun. It becomes a draft, and an approval of it ends: submit
it again. --send-at now sends it as soon as it is approved.`,
		Example: `  fanfare sends change snd-k3j5h2m7q4r6 --send-at 2026-12-02T08:00:00+01:00`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			change := map[string]any{}
			flags := command.Flags()
			for flag, value := range map[string]any{"name": &name, "template": &template, "channel": &channel, "lane": &lane, "reference": &reference, "skip-invalid": &skip} {
				if flags.Changed(flag) {
					change[strings.ReplaceAll(flag, "-", "_")] = value
				}
			}
			if flags.Changed("data") {
				text, err := c.dataOf(data)
				if err != nil {
					return err
				}
				change["data"] = jsonText(text)
			}
			switch {
			case at == "now":
				change["send_at"] = nil
			case at != "":
				when, err := time.Parse(time.RFC3339, at)
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: "--send-at " + at + " is not a time", Hint: "write it as 2026-12-01T08:00:00+01:00, or now"}
				}
				change["send_at"] = when
			}
			if len(change) == 0 {
				return &fanfare.Error{Code: fanfare.Invalid, Message: "nothing to change", Hint: "pass one of the flags of fanfare sends change --help"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			changed, err := api.ChangeSend(command.Context(), args[0], change)
			if err != nil {
				return err
			}
			return c.printSend(&changed)
		},
	}
	flags := command.Flags()
	flags.StringVar(&name, "name", "", "name of the send")
	flags.StringVar(&template, "template", "", "name of a template, or name@version")
	flags.StringVar(&channel, "channel", "", "channel over which to send")
	flags.StringVar(&data, "data", "", "event data for the template: a JSON object, a file, or -")
	flags.StringVar(&at, "send-at", "", "time to send, for example 2026-12-01T08:00:00+01:00, or now")
	flags.StringVar(&lane, "lane", "", "lane: urgent, normal or bulk")
	flags.StringVar(&reference, "reference", "", "your own reference of its messages")
	flags.BoolVar(&skip, "skip-invalid", false, "send without the invalid rows of the list")
	return command
}

// jsonText is JSON that is encoded as it is.
type jsonText []byte

// MarshalJSON returns the text.
func (t jsonText) MarshalJSON() ([]byte, error) { return t, nil }

func (c *cli) sendsUploadCommand() *cobra.Command {
	var address string
	command := &cobra.Command{
		Use: "upload SEND FILE|-", Short: "Upload the list of a send from a CSV file",
		Long: `Upload the list of a send from a CSV file in UTF-8, with the column names in its first
row. The delimiter is a comma, a semicolon or a tab. One column has the addresses; rows
can have the id of a subscriber in the column subscriber instead. Each other column is a
value of the template: {{ sub.COLUMN }}. An empty cell is a missing value.

All rows are checked, and their messages are rendered. If a row is invalid, the command
lists the errors with the numbers of their rows as a spreadsheet shows them, and the
list that was uploaded before remains. If the send skips invalid rows, they are listed
and skipped. The send becomes a draft: submit it again.

Exit code 2: rows are skipped.`,
		Example: `  fanfare sends upload snd-k3j5h2m7q4r6 members.csv
  fanfare sends upload snd-k3j5h2m7q4r6 members.csv --address E-Mail`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			uploaded, err := c.uploadList(command.Context(), api, args[0], address, args[1])
			if err != nil {
				return err
			}
			if err := c.printSend(&uploaded.Send); err != nil {
				return err
			}
			for i := range uploaded.Errors {
				fmt.Fprintln(c.err, rowError(&uploaded.Errors[i]))
			}
			if l := uploaded.Send.Recipients; l != nil && l.Invalid > 0 {
				return &someFailed{terminal.Amount(l.Invalid, "row is skipped", "rows are skipped")}
			}
			return nil
		},
	}
	command.Flags().StringVar(&address, "address", "", "name of the column with the addresses (default: to)")
	return command
}

// rowError is an error of a row in one line.
func rowError(e *client.SendError) string {
	where := fmt.Sprintf("row %d", e.Row)
	if e.Column != "" {
		where += ", column " + e.Column
	}
	text := where + ": " + terminal.Short(e.Detail)
	if e.Hint != "" {
		text += " (" + terminal.Short(e.Hint) + ")"
	}
	return text
}

// uploadList uploads a file and shows how much of it was sent.
func (c *cli) uploadList(ctx context.Context, api *client.Client, id, address, name string) (client.SendUpload, error) {
	in, size, err := c.open(name)
	if err != nil {
		return client.SendUpload{}, err
	}
	defer in.Close()
	bar := c.newBar("uploading", "KB", size>>10)
	defer bar.End()
	uploaded, err := api.UploadRecipients(ctx, id, address, &countingReader{from: in, tell: func(done int64) { bar.Set(done>>10, done>>10) }})
	e, ours := errors.AsType[*fanfare.Error](err)
	if !ours || len(e.Details) == 0 {
		return uploaded, inFile(name, err)
	}
	bar.End()
	for _, one := range e.Details {
		fmt.Fprintln(c.err, rowError(&client.SendError{Row: int64(one.Line), Column: strings.TrimPrefix(one.Pointer, "/"), Detail: one.Message, Hint: one.Hint}))
	}
	whole := *e
	whole.Details = nil
	whole.Hint = fmt.Sprintf("correct the rows and upload the list again, or run fanfare sends change %s --skip-invalid and upload it again", id)
	return uploaded, inFile(name, &whole)
}

// countingReader tells how many bytes were read.
type countingReader struct {
	from io.Reader
	done int64
	tell func(done int64)
}

func (r *countingReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.done += int64(n)
	r.tell(r.done)
	return n, err
}

func (c *cli) sendsRowsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rows SEND", Short: "List the rows of the list of a send", Example: "  fanfare sends rows snd-k3j5h2m7q4r6", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all := []client.SendRow{}
			for row, err := range api.SendRows(command.Context(), args[0]) {
				if err != nil {
					return err
				}
				all = append(all, row)
			}
			if c.json {
				return c.printJSON(all)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ROW\tTO\tSTATE\tDATA")
			for i := range all {
				r := &all[i]
				state, to := "valid", r.To
				if to == "" {
					to = r.Subscriber
				}
				switch {
				case r.Erased:
					state = "erased"
				case len(r.Errors) > 0:
					state = r.Errors[0].Detail
				case r.Suppressed != "":
					state = "suppressed: " + r.Suppressed
				}
				fmt.Fprintf(table, "%d\t%s\t%s\t%s\n", r.Row, terminal.Short(to), terminal.Short(state), terminal.Short(string(r.Data)))
			}
			table.Flush()
			return nil
		},
	}
}

func (c *cli) sendsErrorsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "errors SEND", Short: "List the errors of the last upload of a send", Example: "  fanfare sends errors snd-k3j5h2m7q4r6", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all := []client.SendError{}
			for one, err := range api.SendErrors(command.Context(), args[0]) {
				if err != nil {
					return err
				}
				if all = append(all, one); !c.json {
					fmt.Fprintln(c.out, rowError(&one))
				}
			}
			if c.json {
				return c.printJSON(all)
			}
			return nil
		},
	}
}

func (c *cli) sendsPreviewCommand() *cobra.Command {
	var row int64
	command := &cobra.Command{
		Use: "preview SEND", Short: "Preview the message to a row",
		Long: `Preview the message to a row of the list, as it would be sent. Rows have the numbers
that a spreadsheet shows: the header is row 1.`,
		Example: "  fanfare sends preview snd-k3j5h2m7q4r6 --row 17", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			p, err := api.PreviewRow(command.Context(), args[0], row)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(p)
			}
			fmt.Fprintf(c.out, "To: %s\nSubject: %s\n\n%s\n", terminal.Short(p.To), terminal.Short(p.Subject), p.Text)
			return nil
		},
	}
	command.Flags().Int64Var(&row, "row", 2, "number of the row")
	return command
}

func (c *cli) sendsSubmitCommand() *cobra.Command {
	return &cobra.Command{
		Use: "submit SEND", Short: "Submit a draft for approval", Example: "  fanfare sends submit snd-k3j5h2m7q4r6", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			submitted, err := api.SubmitSend(command.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printSend(&submitted)
		},
	}
}

func (c *cli) sendsApproveCommand() *cobra.Command {
	var digest string
	command := &cobra.Command{
		Use: "approve SEND --digest DIGEST", Short: "Approve a send of somebody else",
		Long: `Approve a send that was submitted, as you saw it: fanfare sends show prints its digest.
An author of the send cannot approve it, and neither can another key with the same owner.`,
		Example: `  fanfare sends show snd-k3j5h2m7q4r6
  fanfare sends preview snd-k3j5h2m7q4r6 --row 17
  fanfare sends approve snd-k3j5h2m7q4r6 --digest sha256:1d2f6b2f0c1d8f7e4a5b9c3d7e8f0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			approved, err := api.ApproveSend(command.Context(), args[0], digest)
			if err != nil {
				return err
			}
			return c.printSend(&approved)
		},
	}
	command.Flags().StringVar(&digest, "digest", "", "digest of the send that you have seen")
	_ = command.MarkFlagRequired("digest") // the flag exists
	return command
}

func (c *cli) sendsStopCommand(name, short, done string, do func(*client.Client, context.Context, string, string) (client.ListSend, error)) *cobra.Command {
	var reason string
	command := &cobra.Command{
		Use: name + " SEND", Short: short, Example: "  fanfare sends " + name + " snd-k3j5h2m7q4r6 --reason 'a mistake in the text'", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			is, err := do(api, command.Context(), args[0], reason)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(is)
			}
			c.say(done + " " + is.ID)
			return nil
		},
	}
	command.Flags().StringVar(&reason, "reason", "", "reason, which the send and its broadcasts show")
	return command
}

func (c *cli) sendsListCommand() *cobra.Command {
	var state string
	command := &cobra.Command{
		Use: "list", Short: "List sends, the latest first", Example: "  fanfare sends list --state submitted", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			all := []client.ListSend{}
			for s, err := range api.Sends(command.Context(), state) {
				if err != nil {
					return err
				}
				all = append(all, s)
			}
			if c.json {
				return c.printJSON(all)
			}
			table := c.newTable()
			fmt.Fprintln(table, "ID\tSTATE\tRECIPIENTS\tSEND AT\tTEMPLATE\tNAME")
			for i := range all {
				s := &all[i]
				recipients := "-"
				if s.Recipients != nil {
					recipients = terminal.Grouped(s.Recipients.Valid)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.ID, s.State, recipients, dateOr(s.SendAt, "-"), terminal.Short(s.Template), terminal.Short(s.Name))
			}
			table.Flush()
			return nil
		},
	}
	command.Flags().StringVar(&state, "state", "", "only sends in this state: draft, submitted, scheduled, sending, paused, completed or cancelled")
	return command
}

func (c *cli) sendsShowCommand() *cobra.Command {
	watch := false
	command := &cobra.Command{
		Use: "show SEND", Short: "Show a send and its progress",
		Long: `Show a send, its digest and its progress. With --watch, the command follows it and returns
when it has ended.

Exit code 2 with --watch: some messages were not delivered.`,
		Example: `  fanfare sends show snd-k3j5h2m7q4r6
  fanfare sends show snd-k3j5h2m7q4r6 --watch`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			s, err := api.ListSend(command.Context(), args[0])
			if err == nil && watch {
				s, err = c.watchSend(command.Context(), api, s)
			}
			if err != nil {
				return err
			}
			if err := c.printSend(&s); err != nil || !watch || s.Progress == nil {
				return err
			}
			if missed := s.Progress.Settled - s.Progress.Counts[fanfare.Accepted] - s.Progress.Counts[fanfare.Delivered]; missed > 0 {
				return &someFailed{terminal.Amount(missed, "message was not delivered", "messages were not delivered")}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&watch, "watch", false, "follow the send until it has ended")
	return command
}

// watchSend returns when a send has ended.
func (c *cli) watchSend(ctx context.Context, api *client.Client, s client.ListSend) (client.ListSend, error) {
	total := int64(0)
	if s.Recipients != nil {
		total = s.Recipients.Valid
	}
	bar := c.newBar("sending", "messages", total)
	defer bar.End()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	said := ""
	for {
		if s.Progress != nil {
			bar.Set(s.Progress.Settled, s.Progress.Settled)
		}
		if s.State == "completed" || s.State == "cancelled" {
			return s, nil
		}
		if s.State != said && s.State != "sending" {
			said = s.State
			fmt.Fprintf(c.err, "%s is %s%s\n", s.ID, s.State, reasonOf(s.Reason))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		var err error
		if s, err = api.ListSend(ctx, s.ID); err != nil {
			return s, err
		}
	}
}

func reasonOf(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + terminal.Short(reason)
}

// printSend prints a send.
func (c *cli) printSend(s *client.ListSend) error {
	if c.json {
		return c.printJSON(s)
	}
	fmt.Fprintf(c.out, "%s %s%s\n", s.ID, s.State, reasonOf(s.Reason))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(c.out, "  %-11s %s\n", name, terminal.Short(text))
		}
	}
	line("name", s.Name)
	line("template", s.Template+" over "+s.Channel)
	if l := s.Recipients; l != nil {
		text := terminal.Grouped(l.Valid) + " of " + terminal.Amount(l.Rows, "row", "rows")
		if l.Suppressed > 0 {
			text += ", " + terminal.Grouped(l.Suppressed) + " of them suppressed"
		}
		line("recipients", text)
	}
	if !s.SendAt.IsZero() {
		line("send at", s.SendAt.Local().Format("2006-01-02 15:04 MST"))
	}
	if e := s.Estimate; e != nil && e.Seconds > 0 {
		line("takes", (time.Duration(e.Seconds)*time.Second).String()+" at "+e.Rate)
	}
	line("authors", strings.Join(s.Authors, ", "))
	line("digest", s.Digest)
	line("approved by", s.ApprovedBy)
	if p := s.Progress; p != nil {
		line("progress", strings.TrimSpace(gauge(p.Settled, p.Recipients)+" "+countsText(p.Counts)))
		if p.Refused > 0 {
			line("refused", terminal.Amount(p.Refused, "row", "rows"))
		}
	}
	if s.State == "submitted" {
		fmt.Fprintf(c.err, "another person approves it with fanfare sends approve %s --digest %s\n", s.ID, s.Digest)
	}
	return nil
}

func (c *cli) sendsReportCommand() *cobra.Command {
	var file string
	command := &cobra.Command{
		Use: "report SEND", Short: "Download the outcome of each row as CSV",
		Example: `  fanfare sends report snd-k3j5h2m7q4r6 -o report.csv`, Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			api, err := c.connect()
			if err != nil {
				return err
			}
			report, err := api.SendReport(command.Context(), args[0])
			if err != nil {
				return err
			}
			defer report.Close()
			out := c.out
			if file != "" {
				f, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				out = f
			}
			_, err = io.Copy(out, report)
			return err
		},
	}
	command.Flags().StringVarP(&file, "output", "o", "", "file to write (default: standard output)")
	return command
}

func (c *cli) sendsDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete SEND", Short: "Delete a draft or an ended send with its list", Example: "  fanfare sends delete snd-k3j5h2m7q4r6", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := api.DeleteSend(command.Context(), args[0]); err != nil {
				return err
			}
			c.say("deleted " + args[0])
			return nil
		},
	}
}
