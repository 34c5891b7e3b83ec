package postgres

import (
	"bytes"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// attemptsSeen counts those of a manifest.
func attemptsSeen(t *testing.T, part store.Part, manifest int64) (n int) {
	t.Helper()
	return len(positions(t, part, manifest))
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for limit := time.After(time.Minute); !cond(); {
		select {
		case <-limit:
			t.Fatalf("%s did not come about", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func lateDay(t *testing.T, db *DB, of fanfare.Day) store.Part {
	t.Helper()
	part, err := db.Late().Day(t.Context(), of, false)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

func TestAStreamingStandbyIsReadFromAsFarAsItHasCome(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Quick...)
	standby := primary.Standby(pgtest.Quick...)
	var log bytes.Buffer
	db := open(t, primary.URL, Options{ReadURL: standby.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	part, err := db.Day(t.Context(), aDay, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the standby has what was recorded", func() bool {
		facts, err := Look(t.Context(), standby.URL)
		if err != nil {
			t.Fatal(err)
		}
		return facts.Standby && facts.Days == 1 && facts.Lag == 0
	})
	standby.Administer("SELECT pg_wal_replay_pause()")
	// Pausing is a request: the standby stops somewhere in what is recorded from here on.
	from := int64(3)
	eventually(t, "the standby falls behind", func() bool {
		if err := record(part, 1, from, 3); err != nil {
			t.Fatal(err)
		}
		from += 3
		return attemptsSeen(t, lateDay(t, db, aDay), 1) < attemptsSeen(t, part, 1)
	})
	if _, err := db.Day(t.Context(), later, true); err != nil {
		t.Fatal(err)
	}
	recordOn(t, db, later)
	if n := attemptsSeen(t, lateDay(t, db, later), 1); n != 3 {
		t.Errorf("of a day that the standby has not heard of: %d attempts, want the primary's 3", n)
	}
	standby.Administer("SELECT pg_wal_replay_resume()")
	all := attemptsSeen(t, part, 1)
	eventually(t, "the standby catches up", func() bool { return attemptsSeen(t, lateDay(t, db, aDay), 1) == all })
	standby.Kill()
	if n := attemptsSeen(t, lateDay(t, db, aDay), 1); n != all {
		t.Errorf("without the standby: %d attempts, want the primary's %d", n, all)
	}
	if !db.Stats().Absent || db.Stats().Away {
		t.Errorf("without the standby: %+v", db.Stats())
	}
	standby.Restart()
	eventually(t, "the server reads from the standby again", func() bool {
		attemptsSeen(t, lateDay(t, db, aDay), 1)
		return !db.Stats().Absent
	})
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	for _, once := range []string{"the standby cannot be reached", "the server reads from the standby again"} {
		if n := strings.Count(log.String(), once); n != 1 {
			t.Errorf("told %d times that %s:\n%s", n, once, &log)
		}
	}
}

func TestAServerOnAStandbyIsToldToGoToThePrimary(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Quick...)
	db := open(t, primary.URL, Options{})
	if _, err := db.Day(t.Context(), aDay, true); err != nil {
		t.Fatal(err)
	}
	replica := primary.Standby(pgtest.Quick...)
	_, err := Open(t.Context(), replica.URL, Options{RetryFor: time.Nanosecond})
	if fanfare.CodeOf(err) != fanfare.Unavailable || !strings.Contains(err.Error(), words[standby].Message) || !errors.Is(err, store.ErrAway) {
		t.Errorf("got %v", err)
	}
}

// The URL names both, and asks for the one that writes.
func TestAServerGoesOnWithTheStandbyThatWasPromoted(t *testing.T) {
	primary := pgtest.Start(t, pgtest.Quick...)
	standby := primary.Standby(pgtest.Quick...)
	db := open(t, either(t, primary.URL, standby.URL), Options{RetryFor: time.Minute})
	part, err := db.Day(t.Context(), aDay, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := record(part, 1, 0, 3); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the standby has what was recorded", func() bool {
		facts, err := Look(t.Context(), standby.URL)
		return err == nil && facts.Days == 1 && facts.Lag == 0
	})
	standby.Administer("SELECT pg_wal_replay_pause()")
	if _, err := db.Day(t.Context(), later, true); err != nil { // of which the standby does not hear
		t.Fatal(err)
	}
	recordOn(t, db, later)
	primary.Kill()
	standby.Administer("SELECT pg_promote(false)")
	if err := record(part, 1, 3, 3); err != nil {
		t.Fatal(err)
	}
	if n := attemptsSeen(t, part, 1); n != 6 {
		t.Errorf("%d attempts of 6", n)
	}
	recordOn(t, db, later)
	if err := db.Control().Write(t.Context(), func(s store.Session) error { return s.Run("change_seq_set", int64(7)) }); err != nil {
		t.Error(err)
	}
}

func either(t *testing.T, one, other string) string {
	t.Helper()
	u, err := url.Parse(one)
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(other)
	if err != nil {
		t.Fatal(err)
	}
	u.Host += "," + second.Host
	u.RawQuery += "&target_session_attrs=read-write"
	return u.String()
}
