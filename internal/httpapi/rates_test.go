package httpapi

import (
	"context"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// askedRates records the last query.
type askedRates struct {
	since, until time.Time
	step         time.Duration
}

func (r *askedRates) Rates(_ context.Context, since, until time.Time, step time.Duration) (wire.Rates, error) {
	r.since, r.until, r.step = since, until, step
	return wire.Rates{Since: since, Until: until}, nil
}

func TestRatesAreThoseOfTheLastDay(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	asked := &askedRates{}
	a := newWorld().api(func(d *Dependencies) { d.Rates, d.Now = asked, func() time.Time { return now } })
	if rec := ask(t, a, "GET", "/v1/rates", ""); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"rates":[]`) {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
	if want := (askedRates{now.Add(-24 * time.Hour), now, time.Minute}); *asked != want {
		t.Errorf("asked for %+v, want %+v", asked, want)
	}
	ask(t, a, "GET", "/v1/rates?since=2026-11-19T00:00:00Z&until=2026-11-20T00:00:00Z&step=15m&service=news", "")
	if asked.step != 15*time.Minute || !asked.since.Equal(time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC)) || !asked.until.Equal(asked.since.Add(24*time.Hour)) {
		t.Errorf("asked for %+v", asked)
	}
	ask(t, a, "GET", "/v1/rates?step=often", "")
	if asked.step != 0 {
		t.Errorf("a step that is not a duration is %s", asked.step)
	}
	for _, wrong := range []string{"?since=yesterday", "?until=", "?step=1m&step=2m", "?step=" + strings.Repeat("1", 20) + "m", "?minute=1"} {
		problemIn(t, ask(t, a, "GET", "/v1/rates"+wrong, ""), 422, fanfare.Invalid)
	}
}

func TestRatesNeedAKeyForAllServices(t *testing.T) {
	a := newWorld().api(func(d *Dependencies) { d.Rates = &askedRates{} })
	problemIn(t, ask(t, a, "GET", "/v1/rates", "", "Authorization", "Bearer "+newsSecret), 403, fanfare.Forbidden)
	problemIn(t, ask(t, a, "GET", "/v1/rates", "", "Authorization", ""), 401, fanfare.Unauthenticated)
}
