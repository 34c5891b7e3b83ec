//go:build crashsteps

package crash

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// moveSteps are those of a move: before the first of them that marks the source,
// the move has not happened.
var moveSteps = []string{"before-last-part", "after-move-full", "after-move-left", "after-move-here"}

// move has a life move everything, and returns when it is over, or does not
// answer any more.
func (w *world) move(l *life, database string) (client.Move, error) {
	to := database
	if to == "" {
		to = "sqlite"
	}
	operator := l.client.ForService("")
	m, err := operator.StartMove(w.given, to)
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for err == nil && m.State == "running" {
		<-look.C
		m, err = operator.Move(w.given)
	}
	if w.given.Err() != nil {
		return m, context.Cause(w.given)
	}
	return m, err
}

// moveTo has the server move everything. It must live, and have done it.
func (w *world) moveTo(database string) {
	w.t.Helper()
	began := time.Now()
	m, err := w.move(w.server.current(), database)
	if err != nil {
		w.t.Fatalf("the move could not be followed: %v", err)
	}
	if m.State != "done" {
		w.t.Fatalf("the move %s: %s (%s)", m.State, m.Error, m.Hint)
	}
	w.t.Logf("moved %s to %s in %v: %d tables compared, writes waited for %.1f ms", m.From, m.To, time.Since(began).Round(time.Millisecond), len(m.Tables), m.Pause)
	w.server.database = database
}

// dieMoving has a new life die at a step of a move.
func (w *world) dieMoving(step, database string) {
	w.t.Helper()
	l := w.server.start("FANFARE_CRASH_AT=" + step + ":1")
	w.server.awaitReady(l)
	m, err := w.move(l, database)
	if err == nil {
		w.t.Fatalf("the move %s, and the server did not come to %s: %s (%s)", m.State, step, m.Error, m.Hint)
	}
	w.server.awaitDeath(w.given, l, fmt.Sprintf("died at %s of the move, which says: %v", step, err))
	w.t.Logf("died at %s, %v after its start", step, time.Since(l.begun).Round(time.Millisecond))
}

// endMove runs the command with nothing running.
func (w *world) endMove(from, to string) {
	w.t.Helper()
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	name := map[bool]string{true: "sqlite", false: "db"}
	cmd := exec.CommandContext(w.t.Context(), path, "migrate", "--data-dir", w.server.dir, "--from", name[from == ""], "--to", name[to == ""])
	cmd.Env = append(os.Environ(), "FANFARE_DB="+from+to)
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("fanfare migrate: %v\n%s", err, out)
	}
}

// The database moves there and back under load, and nothing dies: then only a
// relay that drops its connection before the reply may have a message twice.
func TestNobodyIsMailedTwiceWhenTheDatabaseMoves(t *testing.T) {
	t.Parallel()
	w := newWorldOn(tell(t), "relaxed", 3000, 0, "")
	w.during(func() {
		for _, to := range []string{pgtest.Database(w.t), ""} {
			w.moveTo(to)
			before := w.sink.taken()
			w.until("more has left from there", func() bool { return w.sink.taken() > before+1000 })
		}
	})
	w.check(0)
}

// The server dies at each step of moves there and back, under load. All
// data is then in one of the databases, and the start says which one.
func TestNothingIsLostWhenTheServerDiesInAMove(t *testing.T) {
	t.Parallel()
	for _, route := range []string{"files first", "PostgreSQL first"} {
		t.Run(route, func(t *testing.T) {
			from, to := "", pgtest.Database(t)
			if route == "PostgreSQL first" {
				from, to = to, from
			}
			w := newWorldOn(tell(t), "relaxed", 1500, 0, from)
			kills := 1
			w.during(func() {
				w.server.kill(w.server.current())
				for _, step := range moveSteps {
					w.dieMoving(step, to)
					kills++
					moved := step == "after-move-left" || step == "after-move-here"
					if moved {
						w.refused()
						w.endMove(from, to)
						from, to = to, from
						w.server.database = from
					}
				}
				w.server.awaitReady(w.server.start())
				w.moveTo(to)
			})
			w.check(kills)
		})
	}
}

// refused makes sure that no server starts on a database that is not in charge.
func (w *world) refused() {
	w.t.Helper()
	path, err := binary()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "serve", "--data-dir", w.server.dir, "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "FANFARE_DB="+w.server.database)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "moved to") {
		w.t.Fatalf("a start on the old database: %v\n%s", err, out)
	}
}
