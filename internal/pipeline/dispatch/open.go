package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// claimed is the members of a range that this process has claimed.
type claimed struct {
	members *fanfare.RecipientRange
	refs    []fanfare.DeliveryRef
	reason  string // why they are cancelled, if they are
}

// errBusy means that another batch has some of the deliveries of a batch.
var errBusy = errors.New("another batch is processing some of the deliveries")

// claim takes the free members of a range.
func (l *loader) claim(day fanfare.Day, members *fanfare.RecipientRange, reason string, out *loaded) claimed {
	refs := members.Deliveries(day)
	wanted := len(refs)
	refs = l.claims.Take(refs)
	out.claimed = append(out.claimed, refs...)
	out.busy += wanted - len(refs)
	return claimed{members, refs, reason}
}

// openMembers returns the members, all of one day, that must still be attempted.
func (l *loader) openMembers(ctx context.Context, day fanfare.Day, all []claimed) (members []openMember, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	err = l.Store.Moment(ctx, day, func(moment *deliveries.Moment) error {
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
			of := open[i].members
			for _, ref := range open[i].refs {
				section, row, ok := manifests[of.Manifest].At(ref.Position)
				if !ok {
					return fmt.Errorf("manifest %x has no position %d", uint64(of.Manifest), ref.Position)
				}
				members = append(members, openMember{ref, of.Attempt, section, row})
			}
		}
		return nil
	})
	return members, err
}

// manifestsOf returns the manifests of members. Those that are not cached are read together.
func (l *loader) manifestsOf(moment *deliveries.Moment, day fanfare.Day, all []claimed) (map[fanfare.ManifestID]*fanfare.Manifest, error) {
	manifests := make(map[fanfare.ManifestID]*fanfare.Manifest, len(all))
	var missing []fanfare.ManifestID
	for i := range all {
		id := all[i].members.Manifest
		if _, seen := manifests[id]; seen || len(all[i].refs) == 0 {
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

// untried removes the claimed members for which the attempt of their range must not be made:
// they are settled, or the attempt was made and has its own retry.
func untried(moment *deliveries.Moment, all []claimed) ([]claimed, error) {
	type latest struct {
		attempt uint16
		settled bool
	}
	var spans []deliveries.Span
	var open []claimed
	for _, c := range all {
		if n := len(c.refs); n > 0 {
			spans = append(spans, deliveries.Span{Manifest: c.members.Manifest, From: c.refs[0].Position, To: c.refs[n-1].Position + 1})
			open = append(open, c)
		}
	}
	tried := make([]map[uint32]latest, len(open))
	err := moment.Latest(spans, func(span int, position uint32, attempt uint16, state fanfare.State) {
		if tried[span] == nil {
			tried[span] = map[uint32]latest{}
		}
		tried[span][position] = latest{attempt, state.Settled()}
	})
	if err != nil {
		return nil, err
	}
	for i := range open {
		c := &open[i]
		c.refs = slices.DeleteFunc(slices.Clone(c.refs), func(ref fanfare.DeliveryRef) bool {
			last := tried[i][ref.Position]
			return last.settled || last.attempt != c.members.Attempt-1
		})
	}
	return open, nil
}

// Cancel settles the open deliveries of a batch as cancelled. It skips deliveries that are being
// processed; busy is their number. It does not read manifests, so it can cancel a batch that
// fails because of one.
func (s *Stage) Cancel(ctx context.Context, batch *fanfare.Batch, reason string) (busy int, err error) {
	var mine []fanfare.DeliveryRef
	defer func() { s.claims.Release(mine...) }()
	all := make([]claimed, len(batch.Slices))
	for i := range batch.Slices {
		refs := batch.Slices[i].Deliveries(batch.Day)
		wanted := len(refs)
		refs = s.claims.Take(refs)
		mine, busy = append(mine, refs...), busy+wanted-len(refs)
		all[i] = claimed{&batch.Slices[i], refs, reason}
	}
	return busy, s.cancelClaimed(ctx, batch.Day, all)
}

// cancelClaimed settles the open members of ranges as cancelled.
func (s *Stage) cancelClaimed(ctx context.Context, day fanfare.Day, all []claimed) error {
	if len(all) == 0 {
		return nil
	}
	var open []claimed
	err := s.Store.Moment(ctx, day, func(moment *deliveries.Moment) (err error) {
		open, err = untried(moment, all)
		return err
	})
	if err != nil {
		return err
	}
	var entries []fanfare.Entry
	for i := range open {
		for _, ref := range open[i].refs {
			entries = append(entries, fanfare.Entry{Delivery: ref, Attempt: open[i].members.Attempt, State: fanfare.Cancelled, Text: open[i].reason, At: s.Clock.Now()})
		}
	}
	return s.Recorder.RecordAll(entries)
}
