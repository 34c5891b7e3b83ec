package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"fanfare.dev/fanfare/internal/cli/process"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/internal/config"
	"fanfare.dev/fanfare/internal/server"
)

// serveCommand runs the server until its context ends: at the first SIGINT or
// SIGTERM. The second ends the process at once.
func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server: the API, matching and delivery in one process, with the stores and the
bus in the data directory. On SIGTERM or Ctrl-C, the server stops gracefully: it stops
accepting requests and finishes the transactions in progress. The remaining work resumes
at the next start.`,
		Example: `  fanfare serve
  fanfare serve --data-dir /var/lib/fanfare --listen 0.0.0.0:8085 --public-url https://news.example.org`,
		Args: cobra.NoArgs,
	}
	config.Flags(c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		settings, err := config.Load(c.Flags())
		if err != nil {
			return err
		}
		return serve(c.Context(), settings)
	}
	return c
}

func serve(ctx context.Context, settings config.Config) error {
	if os.Getenv("GOGC") == "" {
		go process.TuneCollector(ctx)
	}
	log := logger(settings)
	slog.SetLogLoggerLevel(slog.LevelDebug) // what libraries say of themselves: net/http repeats what a receiver sends unasked
	slog.SetDefault(log)
	stopProfile, err := process.ProfileOnSignal(os.Getenv("FANFARE_CPUPROFILE"), log)
	if err != nil {
		return err
	}
	a, err := server.Start(ctx, settings, server.Options{Version: version, Logger: log})
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped before the server was ready")
		return stopProfile()
	}
	if err != nil {
		return errors.Join(err, stopProfile())
	}
	fmt.Fprintf(os.Stderr, "fanfare listens on %s\n", a.URL())
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case <-a.Done():
	}
	return errors.Join(a.Stop(), stopProfile())
}

func logger(settings config.Config) *slog.Logger {
	options := &slog.HandlerOptions{Level: settings.Level()}
	if settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, options))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, options))
}
