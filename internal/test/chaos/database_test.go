//go:build crashsteps

package chaos

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"fanfare.dev/fanfare/internal/test/pgtest"
)

// A database is a PostgreSQL server and its machine.
type database struct {
	*pgtest.Server
	machine *machine
	step    string // file with the step of its clock; "" without libfaketime
	killed  bool
}

// settings of PostgreSQL. A standby that was cut off can continue with the log that the primary keeps.
var settings = append([]string{"wal_keep_size=512MB", "max_wal_size=512MB"}, pgtest.Quick...)

// libfaketime returns the library of the Debian package libfaketime, "" without it.
func libfaketime() string {
	found, _ := filepath.Glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// startDatabases starts PostgreSQL with a synchronous standby.
func (c *cluster) startDatabases() {
	prepare := func(name string) (*database, pgtest.Place) {
		d := &database{machine: newMachine(c.t, name, databaseDiskBytes)}
		at := d.machine.place()
		if library := libfaketime(); library != "" {
			d.step = filepath.Join(disks, name+".step")
			stepClock(c.t, d.step, 0)
			at.Environment = []string{"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + d.step, "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1"}
		}
		return d, at
	}
	var at pgtest.Place
	c.primary, at = prepare("postgres-1")
	c.primary.Server = pgtest.StartIn(c.t, at, settings...)
	c.replica, at = prepare("postgres-2")
	c.replica.Server = c.primary.StandbyIn(at, settings...)
	c.primary.Administer("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	c.writer = c.primary
}

// database returns the server that accepts writes.
func (c *cluster) database() *database {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.writer
}

// stepClock sets the step of a clock, in seconds.
func stepClock(t testing.TB, file string, seconds int) {
	text := strconv.Itoa(seconds) + "\n"
	if seconds >= 0 {
		text = "+" + text // libfaketime requires it
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o644); err != nil {
		t.Error(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Error(err)
	}
}

// revive starts the servers again that have ended by themselves, such as after a full disk.
func (c *cluster) revive() {
	for _, d := range []*database{c.primary, c.replica} {
		if d.killed {
			continue
		}
		if ended, err := d.Revive(); ended {
			c.t.Logf("%6.1fs %s ended by itself, and is started again (%v)", c.elapsed(), d.machine.name, err)
		}
	}
}
