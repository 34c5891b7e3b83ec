package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"fanfare.dev/fanfare/client"
)

// runColdStart is B8: from the start of the process to its first answer, with
// price alerts in the store.
func runColdStart(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	goal := matchGoal{2000, 20_000, "ms", ""}
	goal.publish(r, n)
	r.Unit = "ms"
	r.Params["subscriptions"], r.Params["people"] = n, n/alertsOfEach
	q := newQuotes(n, l.Seed, false)
	s, err := l.serve("B8")
	if err != nil {
		return err
	}
	if _, err := s.api.Apply(l.ctx, alertConfiguration(nowhere, "1s"), false); err != nil {
		return err
	}
	took, err := s.populate(n, q.appendAlert)
	if err != nil {
		return err
	}
	r.stage("import", took)
	grown := s.memory("VmRSS")
	if err := s.stop(); err != nil {
		return err
	}
	if s, err = l.serve("B8"); err != nil {
		return err
	}
	r.Value, r.RSSMiB, r.CPUSeconds = millis(s.ready), s.now().peakMiB, s.now().cpu.Seconds()
	r.note("%.2f us a subscription, CPU %.2f us; resident %.0f MiB before the stop, %.0f MiB after the start: %.0f bytes a subscription",
		1000*r.Value/float64(n), 1e6*r.CPUSeconds/float64(n), grown, s.memory("VmRSS"), s.memory("VmRSS")*(1<<20)/float64(n))
	var w wrong
	if err := s.alertsAreThere(q, &w); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if l.DB == "" {
		var raw rawTook
		if err := l.inProcess(r, "scan", rawSpec{Dir: l.file("B8")}, &raw); err != nil {
			return err
		}
		r.Limit = 1000 * raw.Seconds
		r.Ratio = r.Limit / r.Value
		r.note("the limit is reading all rows of both tables with two connections and nothing else; the ratio is limit by value")
	}
	return w.err()
}

// alertsAreThere publishes some quotes, while nothing may leave, and holds the
// matches against those that there must be.
func (s *server) alertsAreThere(q *quotes, w *wrong) error {
	const quotes = 20
	if err := s.pauseAll(); err != nil {
		return err
	}
	bare := q.bare(quotes)
	for i := range quotes {
		event, err := s.api.Publish(s.lab.ctx, "quote", json.RawMessage(q.event(i)), client.PublishOptions{})
		if err != nil {
			return err
		}
		b, _, err := s.manifestsDurable(event.ID)
		if err != nil {
			return err
		}
		want := len(bare.answer(i, nil, nil))
		w.unless(b.Matched == int64(want), "quote %d matched %d alerts, and there are %d", i, b.Matched, want)
	}
	return nil
}

// scanPart reads all subscribers and subscriptions out of a control.db, beside
// each other.
func scanPart(ctx context.Context, spec rawSpec, _ io.Reader, out *json.Encoder) error {
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
	return out.Encode(rawTook{time.Since(started).Seconds()})
}
