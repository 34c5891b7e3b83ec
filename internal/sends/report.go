package sends

import (
	"context"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	// progressAge is how old a shown progress may be, and settledAge how old the counts of completed broadcasts in it, which later receipts and bounces
	// change.
	progressAge = time.Second
	settledAge  = time.Minute
	// maxLatest is the number of broadcasts that a progress names.
	maxLatest = 5
)

// cachedProgress is the progress as it was shown last.
type cachedProgress struct {
	at      time.Time
	shown   *wire.SendProgress
	state   string    // of the send
	since   time.Time // when settled was emptied
	settled map[int64]fanfare.Counts
}

// progressOf returns the progress of a send, nil before its beginning.
func (s *Sends) progressOf(ctx context.Context, e *entry, x *send) (*wire.SendProgress, error) {
	if x.StartedAt.IsZero() || x.List == nil {
		return nil, nil
	}
	now := s.Clock.Now()
	e.mu.Lock()
	cached := e.progress
	e.mu.Unlock()
	if cached.shown != nil && now.Sub(cached.at) < progressAge && cached.state == x.State && cached.shown.Started == x.Sent+x.RefusedRows {
		return cached.shown, nil
	}
	if cached.settled == nil || now.Sub(cached.since) >= settledAge {
		cached.settled, cached.since = map[int64]fanfare.Counts{}, now
	}
	parts, err := s.Store.SendParts(ctx, x.ID)
	if err != nil {
		return nil, err
	}
	p := &wire.SendProgress{Recipients: x.List.Valid, Started: x.Sent + x.RefusedRows, Refused: x.RefusedRows}
	settled := make(map[int64]fanfare.Counts, len(parts))
	for i := range parts {
		ref, ok := fanfare.ParseEventRef(parts[i].Event)
		if !ok {
			continue
		}
		p.Broadcasts++
		if p.Latest = append(p.Latest, parts[i].Event); len(p.Latest) > maxLatest {
			p.Latest = p.Latest[1:]
		}
		counts, known := cached.settled[parts[i].Part]
		if !known {
			b, err := s.Traces.Broadcast(ctx, ref)
			if err != nil && fanfare.CodeOf(err) != fanfare.NotFound {
				return nil, err
			}
			counts = b.Counts
			p.Rate += b.PerSecond
			known = err != nil || !b.Stages.Completed.IsZero()
		}
		if known {
			settled[parts[i].Part] = counts
		}
		for state, n := range counts {
			p.Counts[state] += n
		}
	}
	if rest := x.Sent - p.Counts.Total(); rest > 0 { // of broadcasts that are not matched yet
		p.Counts[fanfare.Pending] += rest
	}
	p.Settled = p.Counts.Settled() + p.Refused
	if left := p.Recipients - p.Settled; left > 0 && p.Rate > 0 && x.State == wire.SendSending {
		p.End = now.Add(time.Duration(float64(left) / p.Rate * float64(time.Second))).UTC().Truncate(time.Second)
	}
	e.mu.Lock()
	e.progress = cachedProgress{now, p, x.State, cached.since, settled}
	e.mu.Unlock()
	return p, nil
}

// The states of rows without a delivery.
const (
	rowInvalid   = "invalid"   // in the list
	rowRefused   = "refused"   // when it was to be sent
	rowErased    = "erased"    // the person was erased
	rowWaiting   = "waiting"   // its part was not sent yet
	rowCancelled = "cancelled" // before its part was sent
	rowUnknown   = "unknown"   // the record of its delivery was deleted
)

// Report visits the outcome of each row, in the order of the list.
func (s *Sends) Report(ctx context.Context, service, id string, visit func(*wire.SendOutcome) error) error {
	x, err := s.listOf(service, id)
	if err != nil {
		return err
	}
	parts, err := s.Store.SendParts(ctx, x.ID)
	if err != nil {
		return err
	}
	events := make(map[int64]string, len(parts))
	sent := make(map[int64]bool, len(parts))
	for i := range parts {
		events[parts[i].Part], sent[parts[i].Part] = parts[i].Event, true
	}
	for chunk := range x.List.Chunks {
		rows, err := s.rows(ctx, &x, chunk)
		if err != nil {
			return err
		}
		list := make([]wire.SendOutcome, len(rows))
		for i := range rows {
			list[i] = rows[i].outcome(x.State)
		}
		if sent[chunk] {
			if err := s.addOutcomes(ctx, &x, chunk, events[chunk], rows, list); err != nil {
				return err
			}
		}
		for i := range list {
			if err := visit(&list[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// outcome returns the outcome of a row that was not sent.
func (r *storedRow) outcome(state string) wire.SendOutcome {
	o := wire.SendOutcome{Row: r.Row, Address: r.name(), State: rowWaiting}
	if r.Address != "" {
		o.Address = r.Address
	}
	switch {
	case r.Erased:
		o.State = rowErased
	case len(r.Errors) > 0:
		o.State, o.Reason = rowInvalid, r.Errors[0].Detail
	case state == wire.SendCancelled:
		o.State = rowCancelled
	}
	return o
}

// addOutcomes adds the outcomes of a part that was sent.
func (s *Sends) addOutcomes(ctx context.Context, x *send, part int64, event string, rows []storedRow, list []wire.SendOutcome) error {
	blob, err := s.Store.SendOutcome(ctx, x.ID, part)
	if err != nil {
		return err
	}
	outcomes, err := unpack[storedOutcome](blob)
	if err != nil || len(outcomes) != 1 {
		return err
	}
	outcome := &outcomes[0]
	refused := make(map[int]string, len(outcome.Refused))
	for i := range outcome.Refused {
		refused[outcome.Refused[i].Index] = outcome.Refused[i].Error.Detail
	}
	at := make(map[fanfare.RowID]int, len(rows))
	recipient := 0
	for i := range rows {
		if len(rows[i].Errors) > 0 {
			continue
		}
		if why, is := refused[recipient]; is && !rows[i].Erased {
			list[i].State, list[i].Reason = rowRefused, why
		} else if recipient < len(outcome.Places) && !rows[i].Erased {
			list[i].State = rowUnknown
			at[outcome.Places[recipient]] = i
		}
		recipient++
	}
	ref, ok := fanfare.ParseEventRef(event)
	if !ok {
		return nil
	}
	b, err := s.Traces.Broadcast(ctx, ref)
	if err == nil && b.Counts.Total() == 0 { // not matched yet
		for _, i := range at {
			list[i].State = fanfare.Pending.String()
		}
		return nil
	}
	if err == nil {
		err = s.Traces.EachOfEvent(ctx, ref, func(subscriber fanfare.RowID, d *fanfare.Delivery) error {
			i, known := at[subscriber]
			if !known {
				return nil
			}
			o := &list[i]
			o.State, o.Message = d.State, d.ID
			if d.Address != "" {
				o.Address = d.Address
			}
			if n := len(d.Attempts); n > 0 {
				last := &d.Attempts[n-1]
				o.Reason, o.At = last.Text, last.At
			}
			return nil
		})
	}
	return unlessDeleted(err)
}

// unlessDeleted returns an error, unless it says that the record of a day was deleted.
func unlessDeleted(err error) error {
	if err == nil || fanfare.CodeOf(err) == fanfare.NotFound {
		return nil
	}
	return err
}
