package rawlimit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bus"
)

// ScanPart reads all subscribers and subscriptions of a control.db, both tables at the
// same time.
func ScanPart(ctx context.Context, spec RawSpec, _ io.Reader, out *json.Encoder) error {
	g, _ := errgroup.WithContext(ctx)
	started := time.Now()
	for _, table := range []string{"subscribers", "subscriptions"} {
		g.Go(func() error {
			conn, err := sqlite.OpenConn(filepath.Join(spec.Dir, "control.db"), sqlite.OpenReadOnly)
			if err != nil {
				return err
			}
			defer conn.Close() //nolint:errcheck // it was only read
			var bytes int64
			err = sqlitex.ExecuteTransient(conn, "SELECT * FROM "+table, &sqlitex.ExecOptions{ResultFunc: func(row *sqlite.Stmt) error {
				for i := range row.ColumnCount() {
					bytes += row.ColumnInt64(i)
				}
				return nil
			}})
			if err != nil {
				return fmt.Errorf("%s: %w", table, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return out.Encode(RawTime{time.Since(started).Seconds()})
}

// A RawSpec is work without a product: messages for a stream, or rows for a table.
type RawSpec struct {
	Dir   string
	Sync  bool
	Count int // messages or rows
	Bytes int // of each
}

type RawTime struct {
	Seconds float64 `json:"seconds"`
}

// BusPart publishes messages to a NATS stream one after the other. Each one is durable
// before the next.
func BusPart(ctx context.Context, spec RawSpec, _ io.Reader, out *json.Encoder) error {
	b, err := bus.Open(ctx, bus.Options{Dir: spec.Dir, Sync: spec.Sync, Lease: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer b.Close() //nolint:errcheck // what was measured is over
	message := []byte(strings.Repeat("x", spec.Bytes))
	started := time.Now()
	for range spec.Count {
		if _, err := b.AppendEvents(ctx, fanfare.Normal, message); err != nil {
			return err
		}
	}
	return out.Encode(RawTime{time.Since(started).Seconds()})
}

// Sizes of the raw inserts.
const (
	rowsPerStatement   = 100
	RowsPerTransaction = 5000
)

// RowsPart inserts rows in ascending order into a table without another index.
func RowsPart(_ context.Context, spec RawSpec, _ io.Reader, out *json.Encoder) error {
	conn, err := sqlite.OpenConn(filepath.Join(spec.Dir, "raw.db"), sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what was measured is over
	synchronous := "NORMAL"
	if spec.Sync {
		synchronous = "FULL"
	}
	for _, text := range []string{"PRAGMA synchronous=" + synchronous, "PRAGMA wal_autocheckpoint=20000",
		"CREATE TABLE rows (place INTEGER PRIMARY KEY, subscriber INTEGER NOT NULL, topic INTEGER NOT NULL, text TEXT NOT NULL) STRICT"} {
		if err := sqlitex.ExecuteTransient(conn, text, nil); err != nil {
			return err
		}
	}
	text := strings.Repeat("x", spec.Bytes)
	started := time.Now()
	for from := 0; from < spec.Count; from += RowsPerTransaction {
		if err := insertRows(conn, from, min(from+RowsPerTransaction, spec.Count), text); err != nil {
			return err
		}
	}
	return out.Encode(RawTime{time.Since(started).Seconds()})
}

func insertRows(conn *sqlite.Conn, from, to int, text string) (err error) {
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	for from < to {
		n := min(rowsPerStatement, to-from)
		insert, err := conn.Prepare("INSERT INTO rows VALUES " + strings.TrimSuffix(strings.Repeat("(?,?,?,?),", n), ","))
		if err != nil {
			return err
		}
		for i := range n {
			insert.BindInt64(4*i+1, int64(from+i))
			insert.BindInt64(4*i+2, int64(from+i))
			insert.BindInt64(4*i+3, 1)
			insert.BindText(4*i+4, text)
		}
		if _, err := insert.Step(); err != nil {
			return err
		}
		if err := insert.Reset(); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// raw runs one of these parts and returns the number of items per second.
func raw(l *harness.Env, part string, count, bytes int) (perSecond float64, err error) {
	dir, err := os.MkdirTemp(l.Dir, part+"-")
	if err != nil {
		return 0, err
	}
	c, err := l.StartPart(part, RawSpec{Dir: dir, Sync: l.Durability == "fsync", Count: count, Bytes: bytes})
	if err != nil {
		return 0, err
	}
	var took RawTime
	if err := c.ReadJSON(&took); err != nil {
		return 0, err
	}
	if took.Seconds <= 0 {
		return 0, c.WithLog(fmt.Errorf("the measured time is not positive: %g s", took.Seconds))
	}
	return float64(count) / took.Seconds, c.Wait()
}

// RawRows returns the rate of raw inserts into SQLite. It returns 0 if the server uses
// another database.
func RawRows(l *harness.Env, count, bytes int) (float64, error) {
	if l.DB != "" {
		return 0, nil
	}
	return raw(l, "rows", count, bytes)
}

// maxGroup and maxGroupBytes are the limits of a group of events in the server. The raw
// publisher sends messages of the same size.
const (
	MaxGroup      = 1000
	maxGroupBytes = 600 << 10
)

// RawEvents returns how many events a second a raw publisher stores if batches of them
// come one after the other.
func RawEvents(l *harness.Env, batches, batch, bytes int) (float64, error) {
	each := min(batch, MaxGroup, max(1, maxGroupBytes/bytes))
	messages := batches * ((batch + each - 1) / each)
	rate, err := raw(l, "bus", messages, each*bytes)
	return rate * float64(batch*batches) / float64(messages), err
}
