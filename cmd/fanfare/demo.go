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

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/demo"
)

// demoCommand shows the main job on real data.
func demoCommand() *cobra.Command {
	o := demo.Options{SMTP: "127.0.0.1:2525", Version: version}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show the main job on real data, in less than a minute",
		Long: `Show the main job on real data: start everything in this process, apply
an example, import subscriptions, publish its events (by default the earthquakes
of one week), deliver the mails to a built-in mail server that only counts them, and print
what happened. Then it keeps serving until Ctrl-C. It needs nothing beside this
binary and leaves nothing behind, unless --data-dir names a folder.`,
		Example: `  fanfare demo
  fanfare demo --once
  fanfare demo --subscriptions 1000 --data-dir ./try
  fanfare demo --example govuk
  fanfare demo --db postgres://fanfare@127.0.0.1/fanfare`,
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.StringVar(&o.Example, "example", "earthquakes", "one of "+strings.Join(demo.Examples(), ", "))
	flags.BoolVar(&o.Once, "once", false, "end when all is shown")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8085", "address of the API; where it is taken, a free port")
	flags.StringVar(&o.DataDir, "data-dir", "", "folder to keep everything in, which must be empty or missing (default: a temporary one)")
	flags.StringVar(&o.DB, "db", "", usageDB)
	flags.IntVar(&o.Subscriptions, "subscriptions", 100_000, "how many, 1000 to 1000000")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if err := enoughPeople(o.Subscriptions); err != nil {
			return err
		}
		var err error
		if o.DB, err = databaseOf(o.DB); err != nil {
			return err
		}
		if o.DB != "" && o.DataDir != "" {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "--db and --data-dir exclude each other", Hint: "with --db everything is removed at the end"}
		}
		ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGHUP, syscall.SIGPIPE) // whose reader has gone
		defer stop()
		// The first signal ends the demo in good order, one that comes later at once.
		defer context.AfterFunc(ctx, func() {
			time.AfterFunc(time.Second, func() { signal.Reset(os.Interrupt, syscall.SIGTERM) })
		})()
		o.Command, o.Terminal = os.Args[0], isTerminal(command.OutOrStdout())
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
		Short: "Write the files of an example, to go through it by hand",
		Long: `Write the files of an example into a folder that is empty or missing: what apply
takes, subscriptions, and events. The subscriptions are made from a fixed seed:
they are the same each time.`,
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
	flags.IntVar(&n, "subscriptions", 10_000, "how many, 1000 to 1000000")
	return command
}

func enoughPeople(n int) error {
	if n < 1000 || n > 1_000_000 {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "--subscriptions is out of range", Hint: "use 1000 to 1000000"}
	}
	return nil
}
