package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/admin/migrate"
	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/datadir"
)

// A migration is what the flags of migrate say.
type migration struct {
	from, to, passwordFile  string
	compare, dryRun, unmark bool
}

func (c *cli) migrateCommand() *cobra.Command {
	var m migration
	command := &cobra.Command{
		Use: "migrate --from DATABASE --to DATABASE", Short: "Move all data to another database, even while the server is running",
		Long: `Move all data to another database, even while the server is running.

DATABASE is sqlite (the files in the data directory), another directory, the URL of a
PostgreSQL database, or db (the value of FANFARE_DB). Do not put a password on the
command line. Use FANFARE_DB, or a file with --password-file.

If a server is running on the data directory, the server moves the data. It copies
everything, replays later writes in the new database, compares both databases table by
table (row counts and hashes), and briefly pauses writes to switch over. Ctrl-C cancels
the move, and the server continues to use the old database. If no server is running,
this command moves the data in the same way.

Before the next start, set db to the new database. The old database keeps its data, but
is marked as moved, and a server does not start on it. To go back without losing later
changes, move the data in the other direction.`,
		Example: `  fanfare migrate --from sqlite --to postgres://fanfare@db.example.org/fanfare --password-file db.password
  fanfare migrate --from sqlite --to db
  fanfare migrate --from db --to sqlite --dry-run
  fanfare migrate --from db --to sqlite --compare`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return c.migrate(command.Context(), &m) },
	}
	flags := command.Flags()
	flags.StringVar(&m.from, "from", "", "database to move from: sqlite, DIR, URL or db")
	flags.StringVar(&m.to, "to", "", "database to move to: sqlite, DIR, URL or db")
	flags.StringVar(&m.passwordFile, "password-file", "", "file whose first line is the password for the URL")
	flags.BoolVar(&m.dryRun, "dry-run", false, "show what would be moved, or why it cannot be moved (no server may be using either database)")
	flags.BoolVar(&m.compare, "compare", false, "compare both databases table by table (no server may be using either database)")
	flags.BoolVar(&m.unmark, "unmark", false, "remove the mark of a move from the database in --from, so that a server can start on it again, without the later changes")
	command.MarkFlagsMutuallyExclusive("dry-run", "compare", "unmark")
	return command
}

func (c *cli) migrate(ctx context.Context, m *migration) error {
	if m.from == "" || m.to == "" && !m.unmark {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "--from or --to is missing", Hint: "pass both, for example --from sqlite --to postgres://fanfare@db.example.org/fanfare"}
	}
	if c.dataDir == "" && isDirectory(m.from) {
		c.dataDir = m.from // a server that works there is the one that is meant
	}
	settings, err := c.migrationSettings()
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	of := migrate.Migration{Config: settings, Version: version, Logger: log, Opening: func(place string) (opened func()) {
		return c.tellSlow("the database " + place)
	}}
	if of.From, err = m.database(m.from, settings.DB); err != nil {
		return err
	}
	if of.To, err = m.database(m.to, settings.DB); err != nil {
		return err
	}
	switch {
	case m.unmark:
		unmarked, err := of.Unmark(ctx)
		if err != nil {
			return err
		}
		return c.printUnmarked(&unmarked)
	case m.dryRun:
		plan, err := of.Plan(ctx)
		return c.printMove(&plan, err)
	}
	bars := &moveBars{cli: c}
	defer bars.end()
	of.Progress = bars.show
	if m.compare {
		compared, err := of.Compare(ctx)
		bars.end()
		return c.printMove(&compared, err)
	}
	works := datadir.InUse(settings.DataDir)
	if c.setting(c.server, "FANFARE_SERVER", "") != "" || works {
		if err := c.checkMove(m, settings.DataDir, works); err != nil {
			return err
		}
		moved, err := c.moveRunning(ctx, &of, bars)
		bars.end()
		return c.printMove(&moved, err)
	}
	moved, err := of.Run(ctx)
	bars.end()
	return c.printMove(&moved, err)
}

// checkMove refuses to have a server move when a flag names data on which it does not
// work. works says whether one works in the data directory.
func (c *cli) checkMove(m *migration, dir string, works bool) error {
	switch {
	case isDirectory(m.from) && !sameDirectory(m.from, dir):
		return contradiction("--from "+m.from+" is not the data directory "+dir+" of the running server", "omit --data-dir, or pass the same directory to --from and --data-dir")
	case c.dataDir != "" && !works:
		return contradiction("no server uses "+dir+", so the server at "+c.setting(c.server, "FANFARE_SERVER", "")+" uses other data", "to move the data in the directory, omit --server and unset FANFARE_SERVER; to move the data of the server, omit the directory")
	}
	return nil
}

// printUnmarked says what --unmark did, and what is still to do.
func (c *cli) printUnmarked(u *migrate.Unmarked) error {
	if c.json {
		return c.printJSON(u)
	}
	at := u.At.Local().Format(time.DateTime)
	switch u.Mark {
	case "":
		fmt.Fprintf(c.out, "%s is not marked as moved: nothing was changed\n", u.Database)
	case migrate.MarkLeft:
		fmt.Fprintf(c.out, "removed the mark of the move to %[1]s at %[2]s: a server can start on %[3]s again, in its state at that time\nIt does not contain later changes in %[1]s. Do not start a server on that database.\n", u.Other, at, u.Database)
	case migrate.MarkHere:
		fmt.Fprintf(c.out, "removed the mark of the move from %s at %s; servers could also start on %s with the mark\n", u.Other, at, u.Database)
	default:
		fmt.Fprintf(c.out, "removed the mark of the move from %s at %s, which was not completed: the data in %s may be incomplete\n", u.Other, at, u.Database)
	}
	return nil
}

// migrationSettings are those of a server on this machine.
func (c *cli) migrationSettings() (config.Config, error) {
	flags := pflag.NewFlagSet("migrate", pflag.ContinueOnError)
	config.Flags(flags)
	if c.dataDir != "" {
		if err := flags.Set("data-dir", c.dataDir); err != nil {
			return config.Config{}, err
		}
	}
	return config.Load(flags) // the environment has the rest
}

// database is the place that a flag names.
func (m *migration) database(flag, db string) (string, error) {
	if flag == "db" {
		if db == "" {
			return "", &fanfare.Error{Code: fanfare.Invalid, Message: "FANFARE_DB is not set", Hint: "set it to the URL, or pass the URL without a password instead of db"}
		}
		return db, nil
	}
	if !strings.Contains(flag, "://") {
		return flag, nil
	}
	u, err := url.Parse(flag)
	if err != nil {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "--from or --to is not a valid URL", Hint: "use postgres://user@host/database"}
	}
	if err := unseen(flag, "put the URL into FANFARE_DB and pass db instead, or use --password-file"); err != nil {
		return "", err
	}
	if m.passwordFile == "" {
		return flag, nil
	}
	text, err := os.ReadFile(m.passwordFile)
	if err != nil {
		return "", err
	}
	password, _, _ := strings.Cut(string(text), "\n")
	u.User = url.UserPassword(u.User.Username(), strings.TrimSuffix(password, "\r"))
	return u.String(), nil
}

// moveRunning has the server move, and follows it. When ctx ends it ends the move.
func (c *cli) moveRunning(ctx context.Context, of *migrate.Migration, bars *moveBars) (client.Move, error) {
	api, err := c.connect()
	if err != nil {
		return client.Move{}, err
	}
	api = api.ForService("")
	status, err := api.Status(ctx)
	if err != nil {
		return client.Move{}, err
	}
	if remote := strings.Contains(of.From, "://"); remote != (status.Database != nil) {
		return client.Move{}, &fanfare.Error{Code: fanfare.Conflict, Message: "the server does not use the database in --from", Hint: "to see which database it uses, run fanfare status"}
	}
	m, err := api.StartMove(ctx, of.To)
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for err == nil && m.State == "running" {
		bars.show(m)
		select {
		case <-ticker.C:
			m, err = api.Move(ctx)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if ctx.Err() != nil && m.State == "running" {
		return m, api.StopMove(context.WithoutCancel(ctx))
	}
	if err == nil && m.State == "failed" {
		err = &fanfare.Error{Code: fanfare.Conflict, Message: m.Error, Hint: m.Hint}
	}
	return m, err
}

// moveBars shows a bar for each phase that counts rows.
type moveBars struct {
	cli   *cli
	phase string
	bar   *terminal.Bar
}

func (b *moveBars) show(m client.Move) {
	if m.Phase != b.phase {
		b.end()
		b.phase = m.Phase
		b.bar = b.cli.newBar(m.Phase, "rows", m.Total)
	}
	b.bar.Set(m.Rows, m.Rows)
}

func (b *moveBars) end() {
	if b.bar != nil {
		b.bar.End()
		b.bar, b.phase = nil, ""
	}
}

// printMove prints the tables, and what came of it.
func (c *cli) printMove(m *client.Move, failure error) error {
	if c.json {
		if err := c.printJSON(m); err != nil {
			return err
		}
		return failure
	}
	if len(m.Tables) > 0 {
		t := c.newTable()
		fmt.Fprintln(t, "PART\tTABLE\tROWS\tHASH\t")
		for i := range m.Tables {
			fmt.Fprintln(t, moveLine(&m.Tables[i]))
		}
		t.Flush()
	}
	if failure != nil {
		return failure
	}
	switch {
	case m.Ended == nil:
		fmt.Fprintf(c.out, "%s would move from %s to %s\n", terminal.Amount(m.Total, "row", "rows"), m.From, m.To)
	case m.Pause > 0:
		fmt.Fprintf(c.out, "moved from %s to %s in %s; writes waited for %.0f ms\n", m.From, m.To, m.Ended.Sub(m.Began).Round(time.Millisecond), m.Pause)
	case len(m.Tables) > 0:
		fmt.Fprintf(c.out, "%s and %s have the same data (%s)\n", m.From, m.To, m.Ended.Sub(m.Began).Round(time.Millisecond))
	default:
		fmt.Fprintf(c.out, "the move from %s to %s was already complete, and is now marked as complete\n", m.From, m.To)
	}
	if m.Hint != "" {
		fmt.Fprintln(c.out, m.Hint)
	}
	return nil
}

// moveLine is a table in one line: where the sides differ, both of them.
func moveLine(t *client.MoveTable) string {
	line := func(rows int64, hash string) string { return fmt.Sprintf("%s\t%.12s", terminal.Grouped(rows), hash) }
	if t.ToHash == "" || t.Equal() {
		return fmt.Sprintf("%s\t%s\t%s\t", t.Part, t.Table, line(t.FromRows, t.FromHash))
	}
	return fmt.Sprintf("%s\t%s\t%s\tDIFFERS: %s", t.Part, t.Table, line(t.FromRows, t.FromHash), strings.ReplaceAll(line(t.ToRows, t.ToHash), "\t", " "))
}
