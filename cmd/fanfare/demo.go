package main

import (
	"context"
	"os"
	"os/signal"
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
examples/earthquakes, import subscriptions, publish the earthquakes of one week,
deliver the mails to a built-in mail server that only counts them, and print
what happened. Then it keeps serving until Ctrl-C. It needs nothing beside this
binary and leaves nothing behind, unless --data-dir names a folder.`,
		Example: `  fanfare demo
  fanfare demo --once
  fanfare demo --subscriptions 1000 --data-dir ./try`,
		Args: cobra.NoArgs,
	}
	flags := command.Flags()
	flags.BoolVar(&o.Once, "once", false, "end when all is shown")
	flags.StringVar(&o.Listen, "listen", "127.0.0.1:8085", "address of the API; where it is taken, a free port")
	flags.StringVar(&o.DataDir, "data-dir", "", "folder to keep everything in, which must be empty or missing (default: a temporary one)")
	flags.IntVar(&o.Subscriptions, "subscriptions", 100_000, "how many, 1000 to 1000000")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if o.Subscriptions < 1000 || o.Subscriptions > 1_000_000 {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "--subscriptions is out of range", Hint: "use 1000 to 1000000"}
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
	return command
}
