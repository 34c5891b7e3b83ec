// Command with runs a command beside a PostgreSQL for tests:
//
//	go run ./internal/test/pgtest/with go test ./...
//
// FANFARE_TEST_POSTGRES tells the command where the server is; where that is set
// already, no other is started. FANFARE_TEST_POSTGRES_TEMPLATE names a database on it
// that has the schema, of which tests get copies. The command's exit code is its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"fanfare.dev/fanfare/internal/store/postgres"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func main() {
	code, err := with(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "with:", err)
		code = 1
	}
	os.Exit(code)
}

func with(command []string) (code int, err error) {
	if len(command) == 0 {
		return 0, errors.New("which command? (go run ./internal/test/pgtest/with COMMAND ARGUMENT…)")
	}
	cmd := exec.CommandContext(context.Background(), command[0], command[1:]...) //nolint:gosec // that is what it is for
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, os.Stdout, os.Stderr, os.Environ()
	if os.Getenv(pgtest.Variable) == "" {
		server, failed := pgtest.Launch(pgtest.Quick...)
		if failed != nil {
			return 0, failed
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		template, failed := server.Template(fill)
		if failed != nil {
			return 0, fmt.Errorf("make the template: %w", failed)
		}
		cmd.Env = append(cmd.Env, pgtest.Variable+"="+server.URL, pgtest.TemplateVariable+"="+template)
	}
	// A terminal's Ctrl-C reaches the command too; what comes to this process
	// alone is passed on. Either way it is the command that ends first.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s) // it may have ended
		}
	}()
	err = cmd.Wait()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), err
}

// fill makes the schema as a server does that starts.
func fill(at string) error {
	db, err := postgres.Open(context.Background(), at, postgres.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return db.Close()
}
