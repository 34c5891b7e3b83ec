package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// claimed are the members of a slice that are in nobody else's hands.
type claimed struct {
	slice *fanfare.RecipientRange
	refs  []fanfare.DeliveryRef
	why   string // they are cancelled
}

// claim takes the members of a slice that are free.
func (l *loader) claim(day fanfare.Day, slice *fanfare.RecipientRange, why string, out *loaded) claimed {
	refs := slice.Deliveries(day)
	wanted := len(refs)
	refs = l.claims.take(refs)
	out.mine = append(out.mine, refs...)
	out.busy += wanted - len(refs)
	return claimed{slice, refs, why}
}

// unsettled returns the members that are still to be attempted, all of one day.
func (l *loader) unsettled(ctx context.Context, day fanfare.Day, all []claimed) (members []pending, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	err = l.store.Moment(ctx, day, func(moment *deliveries.Moment) error {
		open, err := untried(moment, all)
		if err != nil {
			return err
		}
		manifests, err := l.manifestsOf(moment, day, open)
		if err != nil {
			return err
		}
		members = nil
		for i := range open {
			slice := open[i].slice
			for _, ref := range open[i].refs {
				section, member, ok := manifests[slice.Manifest].At(ref.Position)
				if !ok {
					return fmt.Errorf("manifest %x has no position %d", uint64(slice.Manifest), ref.Position)
				}
				members = append(members, pending{ref, slice.Attempt, section, member})
			}
		}
		return nil
	})
	return members, err
}

// manifestsOf returns the manifests of some members; those that are not at hand
// are read in one go.
func (l *loader) manifestsOf(moment *deliveries.Moment, day fanfare.Day, all []claimed) (map[fanfare.ManifestID]*fanfare.Manifest, error) {
	manifests := make(map[fanfare.ManifestID]*fanfare.Manifest, len(all))
	var missing []fanfare.ManifestID
	for i := range all {
		id := all[i].slice.Manifest
		if _, asked := manifests[id]; asked || len(all[i].refs) == 0 {
			continue
		}
		known, _ := l.manifests.Lookup(manifestKey{day, id})
		if manifests[id] = known; known == nil {
			missing = append(missing, id)
		}
	}
	err := moment.Manifests(missing, func(m *fanfare.Manifest) {
		manifests[m.ID] = m
		l.manifests.Add(manifestKey{day, m.ID}, m)
	})
	return manifests, err
}

// cancel settles what is open of cancelled slices.
func (l *loader) cancel(ctx context.Context, day fanfare.Day, all []claimed) error {
	for len(all) > 0 {
		same := 1
		for same < len(all) && all[same].why == all[0].why {
			same++
		}
		members, err := l.unsettled(ctx, day, all[:same])
		if err != nil {
			return err
		}
		if err := l.settle(members, fanfare.Cancelled, all[0].why); err != nil {
			return err
		}
		all = all[same:]
	}
	return nil
}

// untried keeps of members, which are claimed, those that the attempt of their
// slice is still to be made for. The others are over, or this try was made and a
// retry of its own is due.
func untried(moment *deliveries.Moment, all []claimed) ([]claimed, error) {
	type newest struct {
		attempt uint16
		over    bool
	}
	var spans []deliveries.Span
	var open []claimed
	for _, c := range all {
		if n := len(c.refs); n > 0 {
			spans = append(spans, deliveries.Span{Manifest: c.slice.Manifest, From: c.refs[0].Position, To: c.refs[n-1].Position + 1})
			open = append(open, c)
		}
	}
	tried := make([]map[uint32]newest, len(open))
	err := moment.Latest(spans, func(span int, position uint32, attempt uint16, state fanfare.State) {
		if tried[span] == nil {
			tried[span] = map[uint32]newest{}
		}
		tried[span][position] = newest{attempt, state.Settled()}
	})
	if err != nil {
		return nil, err
	}
	for i := range open {
		c := &open[i]
		c.refs = slices.DeleteFunc(slices.Clone(c.refs), func(ref fanfare.DeliveryRef) bool {
			last := tried[i][ref.Position]
			return last.over || last.attempt != c.slice.Attempt-1
		})
	}
	return open, nil
}

// cancelAll settles what is open of a batch whose channel is gone.
func (l *loader) cancelAll(ctx context.Context, batch *fanfare.Batch) error {
	var out loaded
	defer func() { l.claims.release(out.mine...) }()
	all := make([]claimed, len(batch.Slices))
	for i := range batch.Slices {
		all[i] = l.claim(batch.Day, &batch.Slices[i], deliver.ChannelDeleted, &out)
	}
	if err := l.cancel(ctx, batch.Day, all); err != nil {
		return err
	}
	if out.busy > 0 {
		return errBusy
	}
	return nil
}

// errBusy says that some of a batch is in other hands.
var errBusy = errors.New("some deliveries are in another batch that is under way")

// settle records one state for members that get no message.
func (l *loader) settle(members []pending, state fanfare.State, why string) error {
	entries := make([]fanfare.Entry, len(members))
	for i := range members {
		entries[i] = l.entry(&members[i], state, why)
	}
	return l.recorder.RecordAll(entries)
}

func (l *loader) entry(m *pending, state fanfare.State, why string) fanfare.Entry {
	return fanfare.Entry{Delivery: m.ref, Attempt: m.attempt, State: state, Text: why, At: l.clock.Now()}
}
