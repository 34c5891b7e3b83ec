package matching

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// A sqlWorkload can be expressed in SQL: rows of one symbol, or of all, whose threshold
// is reached by a value.
type sqlWorkload interface {
	workload
	sqlRow(i int) (symbol string, threshold float64)
	sqlEvent(i int) (symbol string, value float64)
	// sqlBatch returns how many events a statement has, and whether it asks for the
	// symbol.
	sqlBatch() (events int, bySymbol bool)
}

func (q *priceAlerts) sqlRow(i int) (string, float64) {
	symbol, trigger := q.alert(i)
	return string(loadgen.AppendSymbol(nil, symbol)), trigger
}

func (q *priceAlerts) sqlEvent(i int) (string, float64) {
	symbol, price := q.quote(i)
	return string(loadgen.AppendSymbol(nil, symbol)), price
}

func (*priceAlerts) sqlBatch() (int, bool) { return 1000, true }

func (b thresholds) sqlRow(i int) (string, float64) {
	_, threshold := b.threshold(i)
	return "", threshold
}

func (b thresholds) sqlEvent(i int) (string, float64) { return "", b.level(i) }

func (thresholds) sqlBatch() (int, bool) { return 10, false }

// sqlPeer measures a workload in PostgreSQL with a covering index, batches of events in
// a statement, and the ids of each event in one array.
func sqlPeer(l *harness.Env, w sqlWorkload, n, threads int, length time.Duration) (rate harness.Rate, judged report.Checks, err error) {
	conns := make([]*pgx.Conn, threads)
	for i := range conns {
		if conns[i], err = pgx.Connect(l.Ctx, l.DB); err != nil {
			return rate, nil, err
		}
		defer conns[i].Close(context.WithoutCancel(l.Ctx)) //nolint:errcheck // it was only asked
	}
	batch, bySymbol := w.sqlBatch()
	table := fmt.Sprintf("bench_peer_%d", time.Now().UnixNano())
	defer func() {
		if _, dropping := conns[0].Exec(context.WithoutCancel(l.Ctx), "DROP TABLE IF EXISTS "+table); err == nil {
			err = dropping
		}
	}()
	if err := fillPeer(l.Ctx, conns[0], table, w, n, bySymbol); err != nil {
		return rate, nil, err
	}
	query := peerQuery(table, bySymbol)
	batches := harness.DistinctEvents / batch
	ask := func(c *pgx.Conn, i int) (ids int, err error) {
		symbols, values := make([]string, batch), make([]float64, batch)
		for k := range batch {
			symbols[k], values[k] = w.sqlEvent(i%batches*batch + k)
		}
		rows, err := c.Query(l.Ctx, query, symbols, values)
		if err != nil {
			return 0, err
		}
		var event int64
		var found []int32
		_, err = pgx.ForEachRow(rows, []any{&event, &found}, func() error {
			ids += len(found)
			return nil
		})
		return ids, err
	}
	bare := w.bare(harness.DistinctEvents)
	for i := range 2 {
		got, err := ask(conns[0], i)
		if err != nil {
			return rate, nil, err
		}
		want := 0
		for k := range batch {
			want += len(bare.answer(i*batch+k, w.event(i*batch+k), nil))
		}
		judged.Require(got == want, "PostgreSQL finds %d ids for %d events, expected %d", got, batch, want)
	}
	next := 0
	rate, err = harness.RunThreads(threads, length, func() func(i int) (int, error) {
		c := conns[next]
		next++
		return func(i int) (int, error) { return ask(c, i) }
	})
	rate.Events *= float64(batch)
	return rate, judged, err
}

// fillPeer makes the table and its index. The table is not logged, which makes no
// difference to a reader.
func fillPeer(ctx context.Context, c *pgx.Conn, table string, w sqlWorkload, n int, bySymbol bool) error {
	if _, err := c.Exec(ctx, "CREATE UNLOGGED TABLE "+table+" (symbol text NOT NULL, threshold float8 NOT NULL, id int4 NOT NULL)"); err != nil {
		return err
	}
	i := 0
	_, err := c.CopyFrom(ctx, pgx.Identifier{table}, []string{"symbol", "threshold", "id"}, pgx.CopyFromFunc(func() ([]any, error) {
		if i == n {
			return nil, nil
		}
		symbol, threshold := w.sqlRow(i)
		i++
		return []any{symbol, threshold, int32(i)}, nil
	}))
	if err != nil {
		return err
	}
	key := "threshold"
	if bySymbol {
		key = "symbol, threshold"
	}
	for _, statement := range []string{"CREATE INDEX ON " + table + " (" + key + ") INCLUDE (id)", "VACUUM ANALYZE " + table} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func peerQuery(table string, bySymbol bool) string {
	where := "threshold <= e.value"
	if bySymbol {
		where = "symbol = e.symbol AND " + where
	}
	return "SELECT e.n, array_agg(r.id) FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS e(symbol, value, n)," +
		" LATERAL (SELECT id FROM " + table + " WHERE " + where + ") AS r GROUP BY e.n"
}
