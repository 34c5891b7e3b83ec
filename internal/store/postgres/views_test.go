package postgres

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestViewsAnswerCommonQuestions(t *testing.T) {
	conn := migrated(t)
	if err := createDay(t.Context(), conn, aDay); err != nil {
		t.Fatal(err)
	}
	const seq = 4097
	manifest := fanfare.NewManifestID(seq, 3)
	for attempt, state := range []fanfare.State{1: fanfare.Deferred, 2: fanfare.Accepted} {
		if attempt > 0 {
			execute(t, conn, `INSERT INTO attempts_20261120 (manifest, position, attempt, state, code, at, next_at, text, relay, address)
				VALUES ($1, 17, $2, $3, 250, 1795200000500000000, 0, 'ok', 'mx', 'ada@example.org')`, int64(manifest), attempt, int(state))
		}
	}
	ref := fanfare.DeliveryRef{Day: aDay, Manifest: manifest, Position: 17}
	got := value[string](t, conn, `SELECT concat_ws(' ', delivery, event, state, attempt, at AT TIME ZONE 'UTC', next_at) FROM deliveries WHERE day = '2026-11-20' AND address = 'ada@example.org'`)
	want := ref.String() + " " + fanfare.EventRef{Day: aDay, Seq: seq}.String() + " accepted 2 2026-11-20 18:40:00.5"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	for i, rest := range []string{
		"",
		"INSERT INTO completions_20261120 (seq, counts, first_at, last_at, completed_at) VALUES ($1, '{\"accepted\":7}', 1, 2, 3)",
		"INSERT INTO switches (day, seq, channel, state, reason, at) VALUES ('2026-11-20', $1, 0, 'paused', 'by ada', 1)",
		"INSERT INTO controls (day, seq, name, value, at) VALUES ('2026-11-20', $1, 'hold', 'it is large', 1)",
	} {
		execute(t, conn, `INSERT INTO broadcasts_20261120 (seq, service, topic, posted, matched, messages, kept_at, matched_at, frozen_at)
			VALUES ($1, 'press', 'news', '{}', 9, 7, 1795200000000000000, 1, 1)`, i)
		if rest != "" {
			execute(t, conn, rest, i)
		}
	}
	states := collect[string](t, conn, "SELECT concat_ws(' ', event, state, reason, counts->>'accepted') FROM broadcast_progress WHERE day = '2026-11-20' ORDER BY event")
	if got := strings.Join(states, "; "); got != "evt-20261120-0 running; evt-20261120-1 completed 7; evt-20261120-2 paused by ada; evt-20261120-3 held it is large" {
		t.Errorf("got %s", got)
	}
}

// The names in the database are those of the program.
func TestTheStatesAreAllNamed(t *testing.T) {
	conn := migrated(t)
	names := collect[string](t, conn, "SELECT name FROM delivery_states ORDER BY state")
	if len(names) != fanfare.States {
		t.Fatalf("%d names of %d states", len(names), fanfare.States)
	}
	for state, name := range names {
		if want := fanfare.State(state).String(); name != want {
			t.Errorf("%d is %s, not %s", state, name, want)
		}
	}
}
