package postgres

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

func TestThePasswordIsInNoErrorAndNoLog(t *testing.T) {
	const secret = "s3cr3t-and%20more"
	at, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	wrong, nobody, nowhere, refusing := *at, *at, *at, *at
	wrong.User = url.UserPassword(at.User.Username(), secret)
	nobody.User = url.UserPassword("nobody-of-that-name", secret)
	nowhere.Path = "/nowhere"
	refusing.User, refusing.Host = wrong.User, "127.0.0.1:1"
	for name, of := range map[string]struct {
		url  string
		code fanfare.Code
		away bool
	}{
		"wrong password":   {wrong.String(), fanfare.Unavailable, false},
		"unknown user":     {nobody.String(), fanfare.Unavailable, false},
		"no such database": {nowhere.String(), fanfare.Unavailable, false},
		"no such server":   {refusing.String(), fanfare.Unavailable, true},
		"no port":          {"postgres://u:" + secret + "@host:port/d", fanfare.Invalid, false},
		"broken escape":    {"postgres://u:" + secret + "%@host/d", fanfare.Invalid, false},
		"unknown setting":  {"postgres://u:" + secret + "@host/d?sslmode=perhaps", fanfare.Invalid, false},
		"key words":        {"host=h port=many password=" + secret, fanfare.Invalid, false},
	} {
		var log bytes.Buffer
		_, err := Open(t.Context(), of.url, Options{RetryFor: 1, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
		if fanfare.CodeOf(err) != of.code || errors.Is(err, store.ErrAway) != of.away {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if told, ok := errors.AsType[*fanfare.Error](err); !ok || told.Hint == "" {
			t.Errorf("%s: nobody is told what to do: %v", name, err)
		}
		if said := err.Error() + log.String(); strings.Contains(said, "s3cr3t") {
			t.Errorf("%s: %s", name, said)
		}
	}
}

func TestAMissingPasswordIsReported(t *testing.T) {
	at, err := url.Parse(pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(at.User.Username())
	_, err = Open(t.Context(), at.String(), Options{})
	if told, _ := errors.AsType[*fanfare.Error](err); told == nil || !strings.Contains(told.Message, "none was given") || !strings.Contains(told.Hint, "db_password_file") {
		t.Errorf("got %v", err)
	}
}

func TestEachTroubleOfTheServerHasItsWordAndItsDecision(t *testing.T) {
	for code, want := range map[string]struct {
		code  fanfare.Code
		again bool
		says  string
	}{
		"40001": {fanfare.Unavailable, true, "the same rows"},
		"40P01": {fanfare.Unavailable, true, "the same rows"},
		"55P03": {fanfare.Unavailable, true, "the same rows"},
		"57P01": {fanfare.Unavailable, true, "cannot be reached"},
		"57P02": {fanfare.Unavailable, true, "cannot be reached"},
		"57P03": {fanfare.Unavailable, true, "cannot be reached"},
		"53300": {fanfare.Unavailable, true, "max_connections"},
		"25006": {fanfare.Unavailable, true, "target_session_attrs"},
		"26000": {fanfare.Unavailable, true, "pooler"},
		"53100": {fanfare.DiskFull, false, "disk"},
		"57014": {fanfare.Unavailable, false, "statement_timeout"},
		"28P01": {fanfare.Unavailable, false, "password"},
		"28000": {fanfare.Unavailable, false, "pg_hba.conf"},
		"3D000": {fanfare.Unavailable, false, "CREATE DATABASE"},
		"42501": {fanfare.Unavailable, false, "CREATE SCHEMA"},
		"23505": {fanfare.Unavailable, false, "log"},
		"0A000": {fanfare.Unavailable, false, "log"},
	} {
		of := troubleOf(&pgconn.PgError{Code: code, Message: "as it came"})
		err := newFailure(of, &pgconn.PgError{Code: code, Message: "as it came"})
		if fanfare.CodeOf(err) != want.code || of.again() != want.again || errors.Is(err, store.ErrAway) != want.again {
			t.Errorf("%s: %v, again: %v", code, err, of.again())
		}
		if told, _ := errors.AsType[*fanfare.Error](err); !strings.Contains(told.Error(), want.says) || strings.Contains(told.Error(), "as it came") {
			t.Errorf("%s: a user is told %q", code, told.Error())
		}
		if !strings.Contains(err.Error(), "as it came") {
			t.Errorf("%s: the log is told %q", code, err)
		}
	}
	if of := troubleOf(&pgconn.PgError{Code: "0A000", Routine: "RevalidateCachedQuery"}); !of.again() {
		t.Error("a plan of before a migration is not made again")
	}
}

func TestAFormForManyRowsIsMadeOfThatForOne(t *testing.T) {
	type forms struct{ rows, copied, wary string } // wary: where another than rows
	for text, want := range map[string]forms{
		"INSERT INTO t (a, b) VALUES ($1, $2)": {
			rows: "INSERT INTO t (a, b) SELECT u.v1, u.v2 FROM unnest($1, $2) AS u (v1, v2)", copied: "COPY t (a, b) FROM STDIN (FORMAT binary)"},
		"INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO NOTHING": {
			rows: "INSERT INTO t (a, b) SELECT u.v1, u.v2 FROM unnest($1, $2) AS u (v1, v2)", copied: "COPY t (a, b) FROM STDIN (FORMAT binary)",
			wary: "INSERT INTO t (a, b) SELECT u.v1, u.v2 FROM unnest($1, $2) AS u (v1, v2) ON CONFLICT (a) DO NOTHING"},
		"INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO UPDATE SET b = excluded.b": {
			rows: "INSERT INTO t (a, b) SELECT u.v1, u.v2 FROM unnest($1, $2) AS u (v1, v2) ON CONFLICT (a) DO UPDATE SET b = excluded.b"},
		"INSERT INTO t (a, b) VALUES ($1, $2) ON CONFLICT (a) DO NOTHING RETURNING a": {
			rows: "INSERT INTO t (a, b) SELECT u.v1, u.v2 FROM unnest($1, $2) AS u (v1, v2) ON CONFLICT (a) DO NOTHING RETURNING a"},
		"INSERT INTO t (day, a, b) VALUES ('20261120', $2, coalesce($1, 0))": {
			rows: "INSERT INTO t (day, a, b) SELECT '20261120', u.v2, coalesce(u.v1, 0) FROM unnest($1, $2) AS u (v1, v2)"},
		"INSERT INTO t SELECT $1": {},
		"INSERT INTO t (a) VALUES ($1) ON CONFLICT DO UPDATE SET a = $1": {},
		"UPDATE t SET a = $1": {},
	} {
		st := newStatement("s", text, false)
		if st.insert == nil {
			if want.rows != "" {
				t.Errorf("%s: no form for many rows", text)
			}
			continue
		}
		st.shape.Store(&shape{ParamOIDs: []uint32{20, 20}})
		form, err := st.insert.ofArrays(false)
		wary, wrong := st.insert.ofArrays(true)
		if err != nil || wrong != nil {
			t.Fatalf("%s: %v, %v", text, err, wrong)
		}
		got := forms{rows: form.text, copied: st.insert.copy(false)}
		if wary != form {
			got.wary = wary.text
		}
		if got != want || want.wary != "" && st.insert.copy(true) != "" {
			t.Errorf("%s:\n%+v\n%+v", text, got, want)
		}
	}
}
