package pgtest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestAProxyFailsAsNetworksDo(t *testing.T) {
	s := Start(t, Quick...)
	p := s.Proxy(s.URL)
	connect := func() *pgx.Conn {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), p.URL)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		return conn
	}
	works := func(conn *pgx.Conn) error {
		var one int
		return conn.QueryRow(t.Context(), "SELECT 1").Scan(&one)
	}
	// lost tells whether a connection says nothing, rather than that it is broken.
	lost := func(ask func(context.Context) error) bool {
		brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		err := ask(brief)
		return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	}

	first := connect()
	if err := works(first); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if works(first) == nil {
		t.Error("a connection that was cut works")
	}

	second, third := connect(), connect()
	p.Silence()
	if !lost(func(ctx context.Context) error { return second.Ping(ctx) }) {
		t.Error("an open connection is not silent")
	}
	if !lost(func(ctx context.Context) error { _, err := pgx.Connect(ctx, p.URL); return err }) {
		t.Error("a new connection is not silent")
	}
	p.Heal()
	if err := works(connect()); err != nil {
		t.Errorf("after it healed: %v", err)
	}
	if !lost(func(ctx context.Context) error { return third.Ping(ctx) }) {
		t.Error("what was lost came back")
	}

	fourth := connect()
	s.Terminate()
	if works(fourth) == nil {
		t.Error("a connection that was ended works")
	}

	s.Kill()
	if _, err := pgx.Connect(t.Context(), p.URL); err == nil {
		t.Error("a server that is away is reached")
	}
	s.Restart()
	if got := query(t, p.URL, "SELECT 'back'"); !slices.Equal(got, []string{"back"}) {
		t.Errorf("after the restart: %q", got)
	}
}
