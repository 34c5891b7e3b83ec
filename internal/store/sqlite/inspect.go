package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// Inspect calls fn with the database of a data directory, which fn can only read. A server may use the files, and files of an older version
// are not brought up to date.
func Inspect(dir string, fn func(store.Database) error) error { return fn(&readOnly{dir}) }

// A readOnly database opens a file anew for each read.
type readOnly struct{ dir string }

var errReadOnly = errors.New("the database was opened for reading")

func (db *readOnly) Control() store.Part {
	return &readOnlyPart{filepath.Join(db.dir, controlFile), &controlFormat}
}

func (db *readOnly) Sessions() store.Part {
	return &readOnlyPart{filepath.Join(db.dir, sessionsFile), &sessionFormat}
}

func (db *readOnly) Mailboxes() store.Part {
	return &readOnlyPart{filepath.Join(db.dir, mailboxesFile), &mailboxFormat}
}

func (db *readOnly) Day(_ context.Context, of fanfare.Day, _ bool) (store.Part, error) {
	path := filepath.Join(db.dir, daysFolder, dayPrefix+of.String()+daySuffix)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, unknownDay(of)
	}
	return &readOnlyPart{path, &dayFormat}, nil
}

func (db *readOnly) Days(context.Context) (days []fanfare.Day, err error) {
	files, err := filepath.Glob(filepath.Join(db.dir, daysFolder, dayPrefix+"*"+daySuffix))
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), dayPrefix), daySuffix)
		if day, err := fanfare.ParseDay(name); err == nil {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	slices.Reverse(days)
	return days, err
}

func (db *readOnly) RemoveDay(context.Context, fanfare.Day) error { return errReadOnly }
func (db *readOnly) Close() error                                 { return nil }

type readOnlyPart struct {
	path   string
	format *format
}

func (p *readOnlyPart) Write(context.Context, func(store.Session) error) error { return errReadOnly }
func (p *readOnlyPart) Erase(context.Context, func(store.Session) error) error { return errReadOnly }
func (p *readOnlyPart) Scrub(context.Context, [][]byte) error                  { return errReadOnly }

func (p *readOnlyPart) Snapshot(ctx context.Context, fn func(store.Session) error) error {
	return p.Read(ctx, fn)
}

func (p *readOnlyPart) Read(ctx context.Context, fn func(store.Session) error) error {
	return readFile(ctx, p.path, func(conn *sqlite.Conn) error { return fn(newSession(conn, p.format)) })
}

func readFile(ctx context.Context, path string, fn func(*sqlite.Conn) error) (err error) {
	name, err := peekName(path)
	if err != nil {
		return err
	}
	conn, err := open(name, sqlite.OpenReadOnly|sqlite.OpenURI, []string{"PRAGMA query_only=ON"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetInterrupt(ctx.Done())
	return fn(conn)
}

// CheckStructure runs SQLite's own checks on a database file and verifies the checksums of its write-ahead log. It reports each problem and
// changes nothing.
func CheckStructure(ctx context.Context, path string, problem func(string)) error {
	if err := checkLog(path+"-wal", problem); err != nil {
		return err
	}
	return readFile(ctx, path, func(conn *sqlite.Conn) error {
		err := sqlitex.ExecuteTransient(conn, "PRAGMA integrity_check", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			if text := stmt.ColumnText(0); text != "ok" {
				problem(strings.ReplaceAll(text, "\n", "; "))
			}
			return nil
		}})
		if err != nil {
			return err
		}
		return sqlitex.ExecuteTransient(conn, "PRAGMA foreign_key_check", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			problem(fmt.Sprintf("row %d of the table %s refers to a missing row of %s", stmt.ColumnInt64(1), stmt.ColumnText(0), stmt.ColumnText(2)))
			return nil
		}})
	})
}

// Sizes of the write-ahead log (https://sqlite.org/fileformat2.html#the_write_ahead_log).
const (
	logHeader   = 32
	frameHeader = 24
)

// checkLog verifies the checksums of a write-ahead log. SQLite ignores the first frame whose checksum does not match and all frames after it,
// as if they had not been written. If complete frames of the same log follow, the log is damaged, or a loss of power interrupted a write.
func checkLog(path string, problem func(string)) (err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	header := make([]byte, logHeader)
	if _, err := io.ReadFull(f, header); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // an empty log
		}
		return err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if header[3]&1 == 1 {
		order = binary.BigEndian
	}
	s0, s1 := logSum(order, 0, 0, header[:24])
	if s0 != binary.BigEndian.Uint32(header[24:]) || s1 != binary.BigEndian.Uint32(header[28:]) {
		problem("the header of the write-ahead log is damaged: all transactions in the log are ignored")
		return nil
	}
	frame := make([]byte, frameHeader+binary.BigEndian.Uint32(header[8:]))
	valid, ignored := 0, 0
	for {
		if _, err := io.ReadFull(f, frame); err != nil {
			break // the end, or an incomplete frame
		}
		if string(frame[8:16]) != string(header[16:24]) {
			break // of an earlier use of the log
		}
		if ignored == 0 {
			a, b := logSum(order, s0, s1, frame[:8])
			a, b = logSum(order, a, b, frame[frameHeader:])
			if a == binary.BigEndian.Uint32(frame[16:]) && b == binary.BigEndian.Uint32(frame[20:]) {
				s0, s1 = a, b
				valid++
				continue
			}
		}
		ignored++
	}
	if ignored > 0 {
		problem(fmt.Sprintf("the write-ahead log is damaged after frame %d: SQLite ignores the %d frames after it and the transactions in them; a loss of power during a write in the mode relaxed has the same effect", valid, ignored))
	}
	return nil
}

// logSum is the checksum of the write-ahead log.
func logSum(order binary.ByteOrder, s0, s1 uint32, b []byte) (sum0, sum1 uint32) {
	for ; len(b) >= 8; b = b[8:] {
		s0 += order.Uint32(b) + s1
		s1 += order.Uint32(b[4:]) + s0
	}
	return s0, s1
}
