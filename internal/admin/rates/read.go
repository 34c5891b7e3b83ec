package rates

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/store/control"
)

// The bounds of a query.
const (
	MaxRows = 1500
	MaxStep = time.Hour
)

// Reader reads the values of minutes.
type Reader struct{ Store Store }

// Rates returns the values from since until before until. Each row has those of the minutes in one step; steps begin at multiples of their length since 1970
// in UTC. Steps of which no minute is known have no row.
func (r Reader) Rates(ctx context.Context, since, until time.Time, step time.Duration) (wire.Rates, error) {
	if step < time.Minute || step > MaxStep || step%time.Minute != 0 {
		return wire.Rates{}, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter step must be a whole number of minutes from 1m to 1h", Hint: "use 1m, 5m, 15m or 1h"}
	}
	since, until = startOf(since.Unix(), step), until.UTC()
	if !since.Before(until) {
		return wire.Rates{}, &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter since must be before until", Hint: "omit until for the values up to now"}
	}
	if until.Sub(since) > MaxRows*step {
		return wire.Rates{}, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("the period has more than %d steps", MaxRows), Hint: "use a longer step or a shorter period"}
	}
	rates := wire.Rates{Since: since, Until: until, StepSeconds: int64(step / time.Second)}
	var at time.Time
	var sum values
	end := func() {
		if sum.Minutes > 0 {
			rates.Rates = append(rates.Rates, rateOf(at, &sum))
		}
	}
	err := r.Store.Minutes(ctx, since.Unix(), until.Unix(), func(m control.Minute) error {
		v := values{Minutes: 1}
		if json.Unmarshal([]byte(m.Body), &v) != nil {
			return nil //nolint:nilerr // another version has written it; the minute is unknown
		}
		if of := startOf(m.At, step); !of.Equal(at) {
			end()
			at, sum = of, values{}
		}
		sum.add(&v)
		return nil
	})
	if err != nil {
		return wire.Rates{}, control.UserError(err, "the values of minutes cannot be read")
	}
	end()
	return rates, nil
}

// startOf returns the start of the step that contains a time in Unix seconds.
func startOf(at int64, step time.Duration) time.Time {
	return time.Unix(at-at%int64(step/time.Second), 0).UTC()
}

func rateOf(at time.Time, v *values) wire.Rate {
	return wire.Rate{
		At: at, Minutes: v.Minutes, Events: lanes(v.Events), Outcomes: v.Outcomes, EventsPending: lanes(v.EventGroups), BatchesPending: v.Batches,
		BroadcastsOpen: v.Broadcasts, Pending: v.Pending, Deferred: v.Deferred,
	}
}

func lanes(by [len(fanfare.Lanes)]int64) wire.LaneCounts {
	return wire.LaneCounts{Urgent: by[fanfare.Urgent], Normal: by[fanfare.Normal], Bulk: by[fanfare.Bulk]}
}
