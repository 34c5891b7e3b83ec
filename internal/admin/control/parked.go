package control

import (
	"context"
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/ctxlock"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// ParkingOptions are the components that Parking needs.
type ParkingOptions struct {
	Store    *deliveries.Store
	Bus      *bus.Bus
	Retrying ctxlock.Lock // held during a retry; an erasure holds it too

	// Cancel settles the open deliveries of a batch as cancelled. busy is the number of deliveries that it skipped because they are being sent.
	Cancel func(ctx context.Context, batch *fanfare.Batch, reason string) (busy int, err error)
}

// Parking lists, retries and drops parked work: batches and event groups that failed too often.
type Parking struct{ options ParkingOptions }

// NewParking returns a Parking.
func NewParking(o ParkingOptions) *Parking { return &Parking{o} }

// Parked lists the parked work, oldest first.
func (p *Parking) Parked(ctx context.Context) ([]fanfare.Parked, error) {
	all := []fanfare.Parked{}
	days, err := p.options.Store.Days(ctx)
	if err != nil {
		return nil, err
	}
	for i := range days {
		found, payloads, err := p.options.Store.Parked(ctx, days[len(days)-1-i])
		if err != nil {
			return nil, err
		}
		for j := range found {
			found[j].Shared = found[j].Kind == fanfare.ParkedEvents && ofSeveralServices(payloads[j])
		}
		all = append(all, found...)
	}
	return all, nil
}

// ofSeveralServices reports whether a group has events of several services or cannot be read.
func ofSeveralServices(group []byte) bool {
	events, err := eventgroup.Decode(group, 0)
	if err != nil || len(events) == 0 {
		return true
	}
	for _, e := range events {
		if e.Service != events[0].Service {
			return true
		}
	}
	return false
}

// RetryParked puts parked work back on the bus.
func (p *Parking) RetryParked(ctx context.Context, id string) error {
	if err := p.options.Retrying.Lock(ctx); err != nil {
		return err
	}
	defer p.options.Retrying.Unlock()
	kind, payload, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	switch kind {
	case fanfare.ParkedEvents:
		events, err := eventgroup.Decode(payload, 0)
		if err != nil || len(events) == 0 {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "the parked events " + id + " are damaged and cannot be retried", Hint: "publish the events again, then drop them with `fanfare parked drop " + id + "`"}
		}
		if _, err := p.options.Bus.AppendEvents(ctx, events[0].Lane, payload); err != nil {
			return err
		}
	default:
		var batch fanfare.Batch
		if err := json.Unmarshal(payload, &batch); err != nil {
			return &fanfare.Error{Code: fanfare.Conflict, Message: "parked batch " + id + " is damaged and cannot be retried: " + err.Error(), Hint: "drop the batch; the trace of its event shows which deliveries are still pending"}
		}
		if err := p.options.Bus.Publish(ctx, []fanfare.Batch{batch}); err != nil {
			return err
		}
	}
	return p.options.Store.Unpark(ctx, id)
}

// DropParked deletes parked work. It settles the open deliveries of a batch as cancelled, so that its broadcast completes.
func (p *Parking) DropParked(ctx context.Context, id string) error {
	kind, payload, err := p.find(ctx, id)
	if err != nil {
		return err
	}
	var batch fanfare.Batch
	if kind == fanfare.ParkedBatch && json.Unmarshal(payload, &batch) == nil { // the deliveries of a damaged batch are unknown
		busy, err := p.options.Cancel(ctx, &batch, "parked and dropped")
		if err == nil && busy > 0 {
			err = &fanfare.Error{Code: fanfare.Conflict, Message: "some deliveries of the parked batch are being sent", Hint: "try again in a moment"}
		}
		if err != nil {
			return err
		}
	}
	return p.options.Store.Unpark(ctx, id)
}

func (p *Parking) find(ctx context.Context, id string) (kind string, payload []byte, err error) {
	days, err := p.options.Store.Days(ctx)
	if err != nil {
		return "", nil, err
	}
	for _, day := range days {
		parked, payloads, err := p.options.Store.Parked(ctx, day)
		if err != nil {
			return "", nil, err
		}
		for i := range parked {
			if parked[i].ID == id {
				if payloads[i] == nil {
					payloads[i] = []byte{} // it is damaged: neither a batch nor a group
				}
				return parked[i].Kind, payloads[i], nil
			}
		}
	}
	return "", nil, &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("no parked work %q", id), Hint: "run `fanfare parked list` to see the ids"}
}
