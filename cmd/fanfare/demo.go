package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/demo"
)

// demoCommand shows the main job on real data.
func demoCommand() *cobra.Command {
	o := demo.Options{SMTP: "127.0.0.1:2525", Version: version}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Run a demonstration with real data in less than a minute",
		Long: `Run a demonstration with real data. The command starts a server in this process,
applies an example, imports subscriptions and publishes the events of the example (by
default, one week of earthquakes). It delivers the messages to a built-in mail server
that only counts them, and prints the results. The server then keeps running until
Ctrl-C. The demo needs only this binary, and removes all its data at the end unless
you pass --data-dir.`,
		Example: `  fanfare demo
  fanfare demo --once
  fanfare demo --subscriptions 1000 --data-dir ./try
  fanfare demo --example govuk
  fanfare demo --db postgres://fanfare@127.0.0.1/fanfare`,
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&o.Example, "example", "earthquakes", "one of "+strings.Join(demo.Examples(), ", "))
	flags.BoolVar(&o.Once, "once", false, "exit after printing the results")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8085", "address of the API (if the port is in use, a free port)")
	flags.StringVar(&o.DataDir, "data-dir", "", "directory for the data, which must be empty or not exist (default: a temporary directory)")
	flags.StringVar(&o.DB, "db", "", usageDB)
	flags.IntVar(&o.Subscriptions, "subscriptions", 100_000, "number of subscriptions, 1000 to 1000000")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := enoughPeople(o.Subscriptions); err != nil {
			return err
		}
		var err error
		if o.DB, err = databaseOf(o.DB); err != nil {
			return err
		}
		if o.DB != "" && o.DataDir != "" {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "--db and --data-dir cannot be combined", Hint: "with --db, all data is removed at the end"}
		}
		ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGHUP, syscall.SIGPIPE) // whose reader has gone
		defer stop()
		// The first signal ends the demo in good order, one that comes later at once.
		defer context.AfterFunc(ctx, func() {
			time.AfterFunc(time.Second, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
		})()
		o.Command, o.Terminal = os.Args[0], terminal.IsTerminal(command.OutOrStdout())
		return demo.Run(ctx, o, command.OutOrStdout())
	}
	command.AddCommand(demoFilesCommand())
	return command
}

// demoFilesCommand writes what the demonstration is made of, to be used by hand.
func demoFilesCommand() *cobra.Command {
	example, n := "earthquakes", 0
	command := &cobra.Command{
		Use:   "files FOLDER",
		Short: "Write the files of an example to a directory",
		Long: `Write the files of an example to a directory: the document for apply, subscriptions
and events. The directory must be empty or not exist. The subscriptions are generated
from a fixed seed, so that they are the same each time.`,
		Example: `  fanfare demo files ./stocks --example stocks --subscriptions 1000
  fanfare apply -f stocks/fanfare.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := enoughPeople(n); err != nil {
				return err
			}
			files, err := demo.WriteFiles(args[0], example, n)
			for _, name := range files {
				fmt.Fprintln(command.OutOrStdout(), filepath.Join(args[0], name))
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&example, "example", example, "one of "+strings.Join(demo.Examples(), ", "))
	flags.IntVar(&n, "subscriptions", 10_000, "number of subscriptions, 1000 to 1000000")
	return command
}

func enoughPeople(n int) error {
	if n < 1000 || n > 1_000_000 {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "--subscriptions is out of range", Hint: "use 1000 to 1000000"}
	}
	return nil
}
