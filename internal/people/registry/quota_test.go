package registry_test

import (
	"testing"

	"fanfare.dev/fanfare/internal/store/storetest"
)

func TestReservedQuotaSurvivesARestart(t *testing.T) {
	ctx, place := t.Context(), storetest.Place(t)
	r, _ := openAt(t, place)
	reserve := func(day string, block, want int64) {
		t.Helper()
		if got, err := r.ReserveQuota(ctx, "news/email", day, 1000, block); err != nil || got != want {
			t.Errorf("%s: %d of a block of %d (%v), want %d", day, got, block, err, want)
		}
	}
	reserve("2026-11-20", 600, 600)
	if got, err := r.ReserveQuota(ctx, "news/push", "2026-11-20", 50, 600); err != nil || got != 50 {
		t.Errorf("another channel got %d (%v) of 50", got, err)
	}
	r.Close()
	r, _ = openAt(t, place)
	reserve("2026-11-20", 600, 400)
	reserve("2026-11-20", 600, 0)
	reserve("2026-11-20", -100, -100) // what was not used
	reserve("2026-11-20", 600, 100)
	reserve("2026-11-21", 600, 600)
	reserve("2026-11-20", 600, 0) // a clock that went back
	reserve("2026-11-20", -600, 0)
}

// TestUnusedPartOfAReservationIsReturned also covers a quota that was lowered below the number of
// sent messages: they count again as soon as the quota is raised.
func TestUnusedPartOfAReservationIsReturned(t *testing.T) {
	r, _ := openAt(t, storetest.Place(t))
	for _, step := range []struct{ quota, block, want int64 }{
		{1000, 900, 900},
		{500, -10, -10}, // 890 have left
		{1000, 500, 110},
	} {
		if got, err := r.ReserveQuota(t.Context(), "news/email", "2026-11-20", step.quota, step.block); err != nil || got != step.want {
			t.Errorf("of a quota of %d a block of %d: %d (%v), want %d", step.quota, step.block, got, err, step.want)
		}
	}
}
