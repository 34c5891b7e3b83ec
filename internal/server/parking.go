package server

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/record"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// parking has the work that failed too often.
type parking struct {
	store    *deliveries.Store
	bus      *bus.Bus
	recorder *record.Recorder
	claims   *claims
	clock    clock.Clock
	still    ctxlock.Lock // of a retry, or of who must not see one
}

// Parked lists what waits for an operator, oldest first.
func (p *parking) Parked(ctx context.Context) ([]fanfare.Parked, error) {
	all := []fanfare.Parked{}
	days, err := p.store.Days(ctx)
	if err != nil {
		return nil, err
	}
	for i := range days {
		found, payloads, err := p.store.Parked(ctx, days[len(days)-1-i])
		if err != nil {
			return nil, err
		}
		for j := range found {
			found[j].Shared = found[j].Kind == fanfare.ParkedEvents && shared(payloads[j])
		}
		all = append(all, found...)
	}
	return all, nil
}

// shared reports whether a group has events of several services.
func shared(group []byte) bool {
	events, err := eventgroup.Decode(group, 0)
	if err != nil || len(events) == 0 {
		return true // nobody can tell
	}
	for _, e := range events {
		if e.Service != events[0].Service {
			return true
		}
	}
	return false
}

// RetryParked puts work back where it came from.
func (p *parking) RetryParked(ctx context.Context, id string) error {
	if err := p.still.Lock(ctx); err != nil {
		return err
	}
	defer p.still.Unlock()
	kind, payload, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	switch kind {
	case fanfare.ParkedEvents:
		events, err := eventgroup.Decode(payload, 0)
		if err != nil || len(events) == 0 {
			return fmt.Errorf("parked events %s: %w", id, err)
		}
		if _, err := p.bus.AppendEvents(ctx, events[0].Lane, payload); err != nil {
			return err
		}
	default:
		var batch fanfare.Batch
		if err := json.Unmarshal(payload, &batch); err != nil {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "parked batch " + id + " is damaged and cannot be tried again: " + err.Error(), Hint: "drop it; the trace of its event shows which deliveries are still pending"}
		}
		if err := p.bus.Publish(ctx, []fanfare.Batch{batch}); err != nil {
			return err
		}
	}
	return p.store.Unpark(ctx, id)
}

// DropParked gives work up for good: what is open of a batch is settled as
// cancelled, so that its broadcast comes to an end.
func (p *parking) DropParked(ctx context.Context, id string) error {
	kind, payload, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	var batch fanfare.Batch
	if kind == fanfare.ParkedBatch && json.Unmarshal(payload, &batch) == nil { // a damaged one names no deliveries
		for i := range batch.Slices {
			if err := p.cancel(ctx, batch.Day, &batch.Slices[i]); err != nil {
				return err
			}
		}
	}
	return p.store.Unpark(ctx, id)
}

// cancel settles what is open of a slice. It does without the manifest, which
// may be what made the batch fail.
func (p *parking) cancel(ctx context.Context, day fanfare.Day, slice *fanfare.RecipientRange) error {
	refs := slice.Deliveries(day)
	wanted := len(refs)
	mine := p.claims.take(refs)
	defer p.claims.release(mine...)
	if wanted == 0 {
		return nil
	}
	if len(mine) < wanted {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "some of it is under way", Hint: "drop it again in a moment"}
	}
	var open []claimed
	err := p.store.Moment(ctx, day, func(moment *deliveries.Moment) (err error) {
		open, err = untried(moment, []claimed{{slice: slice, refs: mine}})
		return err
	})
	if err != nil || len(open) == 0 {
		return err
	}
	entries := make([]fanfare.Entry, len(open[0].refs))
	for i, ref := range open[0].refs {
		entries[i] = fanfare.Entry{Delivery: ref, Attempt: slice.Attempt, State: fanfare.Cancelled, Text: "parked and dropped", At: p.clock.Now()}
	}
	return p.recorder.RecordAll(entries)
}

func (p *parking) find(ctx context.Context, id string) (kind string, payload []byte, err error) {
	days, err := p.store.Days(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, day := range days {
		parked, payloads, err := p.store.Parked(ctx, day)
		if err != nil {
			return "", nil, err
		}
		for i := range parked {
			if parked[i].ID == id {
				return parked[i].Kind, payloads[i], nil
			}
		}
	}
	return "", nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no parked work %q", id), Hint: "`fanfare parked list` shows the ids"}
}
