package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/config"
)

func (c *cli) backupCommand() *cobra.Command {
	var rate string
	var stopped bool
	command := &cobra.Command{
		Use: "backup FILE|-", Short: "Back up all data of a running server to a file",
		Long: `Back up all data of a running server to one file: configuration, subscribers and
subscriptions, deliveries, and accepted events that have not been matched yet. The
command writes to a temporary file and renames it once the backup is complete and
verified. It needs an admin key for all services. With --stopped, it reads the data
directory of a stopped server and, if FANFARE_DB is set, that database.

The file contains addresses, as well as the keys that sign links and hash the
suppression list. Its mode is 0600. Encrypt it before you copy it to another machine,
for example with age or gpg.`,
		Example: `  fanfare backup /backup/fanfare-$(date +%F).tar
  fanfare backup --rate 20MB nightly.tar
  fanfare backup - | zstd | age -r age1… > nightly.tar.zst.age
  fanfare backup --stopped --data-dir /var/lib/fanfare before-upgrade.tar
  fanfare backup verify nightly.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			bytesPerSecond, err := parseRate(rate)
			if err != nil {
				return err
			}
			from, err := c.backupFrom(command.Context(), stopped, bytesPerSecond)
			if err != nil {
				return err
			}
			began := time.Now()
			m, err := c.keepBackup(from, args[0])
			if closing := from.Close(); err == nil {
				err = closing
			}
			if err == nil && args[0] != "-" {
				err = c.printBackup(&m, args[0], time.Since(began))
			}
			return err
		},
	}
	command.Flags().StringVar(&rate, "rate", "", "maximum rate in bytes per second, for example 20MB (default: unlimited)")
	command.Flags().BoolVar(&stopped, "stopped", false, "read the data directory of a stopped server")
	command.AddCommand(c.verifyCommand())
	return command
}

func (c *cli) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE|-", Short: "Verify a backup",
		Long: `Verify that a backup is complete and undamaged. If the file is truncated or damaged,
the command reports the position.`,
		Example: "  fanfare backup verify nightly.tar\n  age -d -i key.txt nightly.tar.age | fanfare backup verify -",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			began := time.Now()
			bar := c.newBar("verify", "bytes", 0)
			defer bar.End()
			var m backup.Manifest
			var err error
			if args[0] == "-" {
				m, err = backup.Read(c.in, backup.Visitor{})
			} else {
				m, err = backup.Verify(args[0], func(done, _ int64) { bar.Set(done, done) })
			}
			if err != nil {
				return err
			}
			return c.printBackup(&m, args[0], time.Since(began))
		},
	}
}

// backupFrom opens the stream of a backup.
func (c *cli) backupFrom(ctx context.Context, stopped bool, bytesPerSecond int64) (io.ReadCloser, error) {
	if !stopped {
		api, err := c.connect()
		if err != nil {
			return nil, err
		}
		return api.ForService("").Backup(ctx, bytesPerSecond)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	if err := flags.Set("data-dir", c.setting(c.dataDir, "FANFARE_DATA_DIR", defaultDataDir)); err != nil {
		return nil, err
	}
	settings, err := config.Load(flags) // the environment has the rest
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	out, in := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := backup.TakeStopped(ctx, settings, in, bytesPerSecond, version, log)
		in.CloseWithError(err)
	}()
	return &pipedBackup{out, done}, nil
}

// pipedBackup is a backup that this process writes itself.
type pipedBackup struct {
	*io.PipeReader
	done <-chan struct{}
}

// Close ends it, and returns when the data directory is let go.
func (p *pipedBackup) Close() error {
	err := p.PipeReader.Close()
	<-p.done
	return err
}

// keepBackup writes the stream into a file, or to standard output.
func (c *cli) keepBackup(from io.Reader, file string) (backup.Manifest, error) {
	if file == "-" {
		if terminal.IsTerminal(c.out) {
			return backup.Manifest{}, &fanfare.Error{Code: fanfare.Invalid, Message: "a backup cannot be written to a terminal", Hint: "redirect standard output to a file or a program"}
		}
		return backup.Read(io.TeeReader(from, c.out), backup.Visitor{})
	}
	bar := c.newBar("backup", "bytes", 0)
	defer bar.End()
	return backup.Keep(from, file, bar.Of)
}

func (c *cli) printBackup(m *backup.Manifest, file string, took time.Duration) error {
	if c.json {
		return c.printJSON(m)
	}
	_, err := fmt.Fprintf(c.out, "%s: complete, %s bytes, %s, %s not matched yet, backup of %s by Fanfare %s (%s)\n", file, terminal.Grouped(m.Bytes()), daysOf(m), terminal.Amount(int64(m.Events), "event", "events"),
		m.Began.Local().Format(time.DateTime), m.Fanfare, took.Round(time.Millisecond))
	return err
}

func daysOf(m *backup.Manifest) string {
	if n := m.Days(); n != 1 {
		return terminal.Grouped(int64(n)) + " days"
	}
	return "1 day"
}

// parseRate reads a size; "" is no limit.
func parseRate(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := config.ParseSize(text)
	if err == nil && n < 1 {
		err = errors.New("the rate must be at least 1 byte per second")
	}
	if err != nil {
		return 0, &fanfare.Error{Code: fanfare.Invalid, Message: "--rate: " + err.Error(), Hint: "use a size such as 20MB, which is 20 million bytes per second"}
	}
	return n, nil
}
