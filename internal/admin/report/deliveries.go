package report

import (
	"context"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Page is a part of a list.
type Page[T any] struct {
	List []T
	Next string // cursor of the next page, "" at the end

	// A search that reaches its time budget ends the page, which may then be short or empty. SearchedUntil is the time of the last element that was
	// examined, in a list by time; Searched is the number of elements that were examined before the next page, in another list.
	SearchedUntil time.Time
	Searched      int64
}

// defaultBudget is the time for which a list searches elements that match a filter without an access path.
const defaultBudget = 150 * time.Millisecond

// budget returns a function that reports whether the time of a search is over.
func (t *Traces) budget() (over func() bool) {
	limit := t.Budget
	if limit == 0 {
		limit = defaultBudget
	}
	end := time.Now().Add(limit)
	return func() bool { return !time.Now().Before(end) }
}

// A DeliveryPick contains the filters and the cursor of the deliveries of an event. The zero value selects the whole list.
type DeliveryPick struct {
	State  string
	Reason string // of failed, expired, cancelled and suppressed deliveries, as fanfare.ReasonOf returns it

	After string // Next of the previous page
	Limit int
}

func (p *DeliveryPick) isFiltered() bool { return p.State != "" || p.Reason != "" }

func (p *DeliveryPick) wants(d *fanfare.Delivery) bool {
	return (p.State == "" || d.State == p.State) && (p.Reason == "" || reasonOf(d) == p.Reason)
}

// reasonOf returns the reason of the last attempt.
func reasonOf(d *fanfare.Delivery) string {
	if len(d.Attempts) == 0 {
		return ""
	}
	last := &d.Attempts[len(d.Attempts)-1]
	if !last.State.HasReason() {
		return ""
	}
	return fanfare.ReasonOf(last.Code, last.Text)
}

// Deliveries returns a page of all deliveries of an event, in the order of its manifests.
func (t *Traces) Deliveries(ctx context.Context, ref fanfare.EventRef, after string, limit int) (page []fanfare.Delivery, next string, err error) {
	all, err := t.PickDeliveries(ctx, ref, &DeliveryPick{After: after, Limit: limit})
	return all.List, all.Next, err
}

// PickDeliveries returns a page of the deliveries of an event, in the order of its manifests. An index finds the deliveries in a state that has a reason; with
// another state, the deliveries are searched within a time budget.
func (t *Traces) PickDeliveries(ctx context.Context, ref fanfare.EventRef, p *DeliveryPick) (page Page[fanfare.Delivery], err error) {
	page.List = []fanfare.Delivery{}
	b, err := t.broadcast(ctx, ref)
	if err != nil || b.State == queued {
		return page, err
	}
	first, position, err := parseCursor(p.After, ref.Seq)
	if err != nil {
		return page, err
	}
	manifests, err := t.Store.Manifests(ctx, ref)
	if err != nil {
		return page, err
	}
	over := t.budget()
	var before int64 // deliveries in earlier manifests
	for i := range manifests {
		m := &manifests[i]
		size := uint32(m.Members())
		if m.ID < first {
			before += int64(size)
			continue
		}
		if m.ID > first {
			position = 0
		}
		for position < size {
			found, to, err := t.candidates(ctx, b, ref.Day, m, p, position, size)
			if err != nil {
				return page, err
			}
			for j := range found {
				if !p.wants(&found[j].Delivery) {
					continue
				}
				if len(page.List) == p.Limit {
					page.Next = cursor(m.ID, found[j].position)
					return page, nil
				}
				page.List = append(page.List, found[j].Delivery)
			}
			position = to
			if p.isFiltered() && (position < size || i+1 < len(manifests)) && over() {
				page.Next, page.Searched = cursor(m.ID, position), before+int64(position)
				return page, nil
			}
		}
		before += int64(size)
	}
	return page, nil
}

// chunk is the number of deliveries that are read together.
const chunk = 500

// A candidate is a delivery that may match, with its position in the manifest.
type candidate struct {
	fanfare.Delivery
	position uint32
}

// candidates returns deliveries from a position on, among which are all that match before the position to.
func (t *Traces) candidates(ctx context.Context, b *fanfare.Broadcast, day fanfare.Day, m *fanfare.Manifest, p *DeliveryPick, position, size uint32) (found []candidate, to uint32, err error) {
	state, listed := stateWithReason(p.State)
	if !listed {
		to = min(position+chunk, size)
		list, err := t.deliveries(ctx, b, day, m, position, to)
		for i := range list {
			found = append(found, candidate{list[i], position + uint32(i)})
		}
		return found, to, err
	}
	positions, err := t.Store.Unsent(ctx, day, m.ID, state, position, size, chunk)
	if err != nil {
		return nil, 0, err
	}
	to = size
	if len(positions) == chunk {
		to = positions[chunk-1] + 1
	}
	for len(positions) > 0 {
		run := 1 // positions without a gap
		for run < len(positions) && positions[run] == positions[0]+uint32(run) {
			run++
		}
		list, err := t.deliveries(ctx, b, day, m, positions[0], positions[0]+uint32(run))
		if err != nil {
			return nil, 0, err
		}
		for i := range list {
			found = append(found, candidate{list[i], positions[i]})
		}
		positions = positions[run:]
		if len(found) > p.Limit { // enough for a page
			return found, found[len(found)-1].position + 1, nil
		}
	}
	return found, to, nil
}

// stateWithReason returns the state with a name, if its deliveries are indexed.
func stateWithReason(name string) (fanfare.State, bool) {
	for state := range fanfare.State(fanfare.States) {
		if state.String() == name {
			return state, state.HasReason()
		}
	}
	return 0, false
}

func cursor(m fanfare.ManifestID, position uint32) string {
	return strconv.FormatUint(uint64(m), 16) + "-" + strconv.FormatUint(uint64(position), 16)
}

func parseCursor(s string, seq fanfare.EventSeq) (fanfare.ManifestID, uint32, error) {
	if s == "" {
		return fanfare.NewManifestID(seq, 0), 0, nil
	}
	a, b, _ := strings.Cut(s, "-")
	m, err1 := strconv.ParseUint(a, 16, 64)
	p, err2 := strconv.ParseUint(b, 16, 32)
	if err1 != nil || err2 != nil || fanfare.ManifestID(m).Event() != seq {
		return 0, 0, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/cursor", Message: "the cursor is not from this list", Hint: "use the value of next from the previous page, or omit the cursor"}
	}
	return fanfare.ManifestID(m), uint32(p), nil
}
