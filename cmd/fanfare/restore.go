package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/admin/backup"
)

func (c *cli) restoreCommand() *cobra.Command {
	var list bool
	command := &cobra.Command{
		Use: "restore FILE|- | --list", Short: "Make a data directory of a backup",
		Long: `Make a data directory of a backup. The directory must be empty. The server that is
started there next begins with everything paused: what was open at the backup may
have left after it was taken. --list shows what that is, of a running server;
cancel what must not leave twice, and resume the rest.`,
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
	command.Flags().BoolVar(&list, "list", false, "show what may have left after the backup was taken")
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
	m, err := backup.Restore(in, dir, time.Now().UTC(), bar.of)
	bar.end()
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(m)
	}
	_, err = fmt.Fprintf(c.out, `restored into %s: %s bytes, %s, %s not matched yet, of %s by Fanfare %s
Start the server there: it begins with everything paused. What was open may have left
since; fanfare restore --list shows it then. Cancel what must not leave twice, and
fanfare resume --all.
`, dir, grouped(m.Bytes()), daysOf(&m), amount(int64(m.Events), "event", "events"), m.Began.Local().Format(time.DateTime), m.Fanfare)
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
	fmt.Fprintln(table, "\nBROADCAST\tTOPIC\tOPEN THEN\tOF\tDEFERRED")
	for _, u := range r.Uncertain {
		topic := u.Service + "/" + u.Topic
		if u.Topic == "" {
			topic = u.Service + ", direct"
		}
		if u.Unmatched {
			fmt.Fprintf(table, "%s\t%s\tnot matched then\t\t\n", u.Event, topic)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", u.Event, topic, grouped(u.Unsettled), grouped(u.Messages), grouped(u.Deferred))
	}
	table.Flush()
	return nil
}

// uncertainty says in a line what may have left since the backup.
func uncertainty(r *client.RestoredFrom) string {
	if r.Broadcasts == 0 && r.Unmatched == 0 {
		return "nothing was open then"
	}
	return fmt.Sprintf("%s of %s were open then, and %s not matched: they may have left since",
		amount(r.Deliveries, "delivery", "deliveries"), amount(int64(r.Broadcasts), "broadcast", "broadcasts"), amount(int64(r.Unmatched), "event", "events"))
}
