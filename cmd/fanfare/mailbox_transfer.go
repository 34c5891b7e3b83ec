package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/cli/mailfile"
	"fanfare.dev/fanfare/internal/cli/terminal"
)

// A mailboxLine is a line of the export of a mailbox.
type mailboxLine struct {
	Type    string           `json:"type"`
	Mailbox *exportedMailbox `json:"mailbox,omitempty"`
	Mail    *exportedMail    `json:"mail,omitempty"`
}

type exportedMailbox struct {
	Folders []exportedFolder `json:"folders"`
}

type exportedFolder struct {
	Name string `json:"name"`
}

type exportedMail struct {
	Folder     string    `json:"folder"`
	ReceivedAt time.Time `json:"received_at,omitzero"`
	Flags      []string  `json:"flags"`
	Content    []byte    `json:"content"`
}

func checkMailFormat(format string) error {
	if format != mailfile.Mbox && format != mailfile.Maildir {
		return &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("--format: %q is no format of mail", format), Hint: "use mbox or maildir"}
	}
	return nil
}

func (c *cli) mailboxExportCommand() *cobra.Command {
	var format, to string
	command := &cobra.Command{
		Use: "export ADDRESS --to DIRECTORY", Short: "Export a mailbox to files",
		Long: `Export all messages of a mailbox with their folders, flags and times of arrival to a new
directory. The format mbox is one file for each folder, and maildir one file for each
message (Maildir++). If the command fails, the directory contains a part of the messages.`,
		Example: "  fanfare mailbox export ada@example.com --to ada\n  fanfare mailbox export ada@example.com --format maildir --to ada-maildir", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkMailFormat(format); err != nil {
				return err
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			lines, err := api.ExportMailbox(command.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { _ = lines.Close() }()
			out, err := mailfile.NewWriter(format, to)
			if err != nil {
				return err
			}
			n, err := writeMails(lines, out)
			if err = errors.Join(err, out.Close()); err != nil {
				return err
			}
			c.say(fmt.Sprintf("exported %s to %s", terminal.Amount(int64(n), "message", "messages"), to))
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", mailfile.Mbox, "format of the files: mbox or maildir")
	command.Flags().StringVar(&to, "to", "", "new directory")
	_ = command.MarkFlagRequired("to") // the flag exists
	return command
}

// writeMails writes the messages of an export to files.
func writeMails(lines io.Reader, out mailfile.Writer) (n int, err error) {
	in := json.NewDecoder(lines)
	for {
		var line mailboxLine
		if err := in.Decode(&line); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
		switch {
		case line.Mailbox != nil:
			for _, f := range line.Mailbox.Folders {
				if err := out.Folder(f.Name); err != nil {
					return n, err
				}
			}
		case line.Mail != nil:
			m := line.Mail
			if err := out.Write(&mailfile.Message{Folder: m.Folder, Flags: m.Flags, Received: m.ReceivedAt, Content: m.Content}); err != nil {
				return n, err
			}
			n++
		}
	}
}

func (c *cli) mailboxImportCommand() *cobra.Command {
	var format, from string
	command := &cobra.Command{
		Use: "import ADDRESS --from PATH", Short: "Import messages from files into a mailbox",
		Long: `Import messages with their folders, flags and times of arrival into a mailbox, which must
exist. PATH is an mbox file, whose messages come to the inbox; a directory with a file for
each folder; or a Maildir. Folders that do not exist are created. The messages count in
the quota. Messages that are imported again are stored again.`,
		Example: "  fanfare mailbox import ada@example.com --from ada\n  fanfare mailbox import ada@example.com --format maildir --from ~/Maildir", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := checkMailFormat(format); err != nil {
				return err
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			lines, in := io.Pipe()
			go func() { in.CloseWithError(readMails(format, from, in)) }()
			n, err := api.ImportMailbox(command.Context(), args[0], lines)
			_ = lines.Close() // ends the reading of files after an error
			if err != nil {
				return err
			}
			c.say(fmt.Sprintf("imported %s into the mailbox of %s", terminal.Amount(int64(n), "message", "messages"), args[0]))
			return nil
		},
	}
	command.Flags().StringVar(&format, "format", mailfile.Mbox, "format of the files: mbox or maildir")
	command.Flags().StringVar(&from, "from", "", "file or directory with the messages")
	_ = command.MarkFlagRequired("from") // the flag exists
	return command
}

// readMails writes the messages of files as lines of an import.
func readMails(format, from string, out io.Writer) error {
	lines := json.NewEncoder(out)
	return mailfile.Read(format, from, func(folder string, m *mailfile.Message) error {
		if m == nil {
			return lines.Encode(mailboxLine{Type: "mailbox", Mailbox: &exportedMailbox{Folders: []exportedFolder{{Name: folder}}}})
		}
		flags := m.Flags
		if flags == nil {
			flags = []string{}
		}
		return lines.Encode(mailboxLine{Type: "mail", Mail: &exportedMail{Folder: m.Folder, ReceivedAt: m.Received, Flags: flags, Content: m.Content}})
	})
}
