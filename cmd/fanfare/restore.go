package main

import (
	"fmt"
	"os"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/admin/backup"
)

func (c *cli) restoreCommand() *cobra.Command {
	var list bool
	command := &cobra.Command{
		Use: "restore FILE|- | --list", Short: "Restore a backup into a data directory",
		Long: `Restore a backup into an empty data directory. When a server starts on it, everything
is paused at first, because messages that were open at the time of the backup may have
been sent since. To list these messages on the running server, use --list. Cancel those
that must not be sent twice, and resume the rest.`,
		Example: `  fanfare restore nightly.tar --data-dir /var/lib/fanfare
  age -d -i key.txt nightly.tar.age | fanfare restore - --data-dir /var/lib/fanfare
  fanfare restore --list
  fanfare cancel --broadcast evt-20261120-1001
  fanfare resume --all`,
		Args: func(command *cobra.Command, args []string) error {
			if list {
				return cobra.NoArgs(command, args)
			}
			return cobra.ExactArgs(1)(command, args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			if list {
				return c.listRestored(command)
			}
			return c.restore(args[0])
		},
	}
	command.Flags().BoolVar(&list, "list", false, "list messages that may have been sent after the backup")
	return command
}

func (c *cli) restore(file string) error {
	in := c.in
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return err
		}
		defer opened.Close() //nolint:errcheck // it is only read
		in = opened
	}
	dir := c.setting(c.dataDir, "FANFARE_DATA_DIR", defaultDataDir)
	bar := c.newBar("restore", "bytes", 0)
	m, err := backup.Restore(in, dir, time.Now().UTC(), bar.Of)
	bar.End()
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(m)
	}
	_, err = fmt.Fprintf(c.out, `restored into %s: %s bytes, %s, %s not matched yet, backup of %s by Fanfare %s
Start the server on this directory: everything is paused at first. Messages that were
open may have been sent since the backup. To list them, run fanfare restore --list.
Cancel those that must not be sent twice, and then run fanfare resume --all.
`, dir, terminal.Grouped(m.Bytes()), daysOf(&m), terminal.Amount(int64(m.Events), "event", "events"), m.Began.Local().Format(time.DateTime), m.Fanfare)
	return err
}

// pageOfUncertain is how many lines are asked for at a time.
const pageOfUncertain = 1000

func (c *cli) listRestored(command *cobra.Command) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	api = api.ForService("")
	whole, err := api.Restored(command.Context(), "", pageOfUncertain)
	for next := whole.Next; err == nil && next != ""; {
		var page client.Restored
		page, err = api.Restored(command.Context(), next, pageOfUncertain)
		whole.Uncertain, next = append(whole.Uncertain, page.Uncertain...), page.Next
	}
	if err != nil {
		return err
	}
	whole.Next = ""
	if c.json {
		return c.printJSON(whole)
	}
	return c.printRestored(&whole)
}

func (c *cli) printRestored(r *client.Restored) error {
	fmt.Fprintf(c.out, "restored %s from the backup of %s by Fanfare %s\n%s\n", r.Restored.Local().Format(time.DateTime), r.Backup.Local().Format(time.DateTime), r.Version, uncertainty(&r.RestoredFrom))
	if len(r.Uncertain) == 0 {
		return nil
	}
	table := c.newTable()
	fmt.Fprintln(table, "\nBROADCAST\tTOPIC\tOPEN\tOF\tDEFERRED")
	for _, u := range r.Uncertain {
		topic := u.Service + "/" + u.Topic
		if u.Topic == "" {
			topic = u.Service + ", direct"
		}
		if u.Unmatched {
			fmt.Fprintf(table, "%s\t%s\tnot yet matched\t\t\n", u.Event, topic)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", u.Event, topic, terminal.Grouped(u.Unsettled), terminal.Grouped(u.Messages), terminal.Grouped(u.Deferred))
	}
	table.Flush()
	return nil
}

// uncertainty says in a line what may have left since the backup.
func uncertainty(r *client.RestoredFrom) string {
	if r.Broadcasts == 0 && r.Unmatched == 0 {
		return "no messages were open at that time"
	}
	return fmt.Sprintf("at that time, %s of %s were open and %s not matched: the messages may have been sent since",
		terminal.Amount(r.Deliveries, "delivery", "deliveries"), terminal.Amount(int64(r.Broadcasts), "broadcast", "broadcasts"), terminal.Amount(int64(r.Unmatched), "event", "events"))
}
