package matching

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/test/pgtest"
)

// PostgreSQL must find the same ids as the index.
func TestPostgreSQLFindsTheSameAndLeavesNothing(t *testing.T) {
	l := &harness.Env{Ctx: t.Context(), Options: harness.Options{DB: pgtest.Database(t)}}
	for _, w := range []sqlWorkload{newPriceAlerts(3000, 1, false), thresholds{3000, 1}} {
		rate, judged, err := sqlPeer(l, w, 3000, 2, 10*time.Millisecond)
		if err != nil || len(judged) > 0 || rate.Events <= 0 || rate.IDs <= 0 {
			t.Errorf("%T: %+v, %v, %v", w, rate, judged, err)
		}
	}
	// Of fewer rows than it should have it must not find as many.
	_, judged, err := sqlPeer(l, fewer{thresholds{3000, 1}}, 3000, 1, time.Millisecond)
	if err != nil || len(judged) == 0 {
		t.Errorf("of fewer rows: %v, %v", judged, err)
	}
	left, err := peerTables(l)
	if err != nil || left != 0 {
		t.Errorf("%d tables are left, %v", left, err)
	}
}

// fewer lacks every second row.
type fewer struct{ thresholds }

func (f fewer) sqlRow(i int) (string, float64) {
	if i%2 == 0 {
		return "", 2 * topLevel
	}
	return f.thresholds.sqlRow(i)
}

func peerTables(l *harness.Env) (n int, err error) {
	c, err := pgx.Connect(l.Ctx, l.DB)
	if err != nil {
		return 0, err
	}
	defer c.Close(l.Ctx)
	err = c.QueryRow(l.Ctx, "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'bench_peer_%'").Scan(&n)
	return n, err
}
