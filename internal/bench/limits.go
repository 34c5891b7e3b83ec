package bench

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

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
)

// A rawSpec is work without a product: messages into a stream, or rows into a table.
type rawSpec struct {
	Dir   string
	Sync  bool
	Count int // messages or rows
	Bytes int // of each
}

type rawTook struct {
	Seconds float64 `json:"seconds"`
}

// busPart publishes messages to a stream of NATS one after the other, each of
// them durable before the next.
func busPart(ctx context.Context, spec rawSpec, _ io.Reader, out *json.Encoder) error {
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
	return out.Encode(rawTook{time.Since(started).Seconds()})
}

// Of the raw rows.
const (
	rowsPerStatement   = 100
	rowsPerTransaction = 5000
)

// rowsPart inserts rows in ascending order into a table that has no other index.
func rowsPart(_ context.Context, spec rawSpec, _ io.Reader, out *json.Encoder) error {
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
	for from := 0; from < spec.Count; from += rowsPerTransaction {
		if err := insertRows(conn, from, min(from+rowsPerTransaction, spec.Count), text); err != nil {
			return err
		}
	}
	return out.Encode(rawTook{time.Since(started).Seconds()})
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

// raw runs one of these parts and returns how many it did in a second.
func (l *lab) raw(part string, count, bytes int) (perSecond float64, err error) {
	dir, err := os.MkdirTemp(l.dir, part+"-")
	if err != nil {
		return 0, err
	}
	c, err := l.part(part, rawSpec{Dir: dir, Sync: l.Durability == "fsync", Count: count, Bytes: bytes})
	if err != nil {
		return 0, err
	}
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	var took rawTook
	if err := json.Unmarshal(line, &took); err != nil {
		return 0, c.failed(err)
	}
	if took.Seconds <= 0 {
		return 0, c.failed(fmt.Errorf("it took no time: %s", line))
	}
	return float64(count) / took.Seconds, c.wait()
}

// rawRows is the rate of raw inserts into an SQLite file, 0 where the server has
// another database.
func (l *lab) rawRows(count, bytes int) (float64, error) {
	if l.DB != "" {
		return 0, nil
	}
	return l.raw("rows", count, bytes)
}

// maxGroup and maxGroupBytes are how intake cuts what comes together: the raw
// publisher gets messages of the same size.
const (
	maxGroup      = 1000
	maxGroupBytes = 600 << 10
)

// rawEvents is how many events a second a raw publisher keeps, where batches of
// them come one after the other.
func (l *lab) rawEvents(batches, batch, bytes int) (float64, error) {
	each := min(batch, maxGroup, max(1, maxGroupBytes/bytes))
	messages := batches * ((batch + each - 1) / each)
	rate, err := l.raw("bus", messages, each*bytes)
	return rate * float64(batch*batches) / float64(messages), err
}
