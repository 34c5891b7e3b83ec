package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/backup"
	"fanfare.dev/fanfare/internal/bus"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A server that was restored does not know what was given out after the backup.
// It leaves out as much as could have been, so that no id names two things.
const (
	restoreSkipsGroups = 1 << 32 // of EVENTS
	restoreSkipsPlaces = 1 << 18 // of each partition
)

// restoring is the first start on a restored directory: everything is paused,
// and what was open at the backup is put where a resume finds it. All of it can
// be repeated, after a kill in the middle.
type restoring struct {
	dir      string
	note     *backup.Note
	store    *deliveries.Store
	registry *registry.Registry
	bus      *bus.Bus
}

// firstGroup is where a new stream EVENTS begins: far above all that the store
// knows, since what was accepted and not matched has ids that were given out.
func firstGroup(highest fanfare.EventSeq, note *backup.Note) uint64 {
	switch {
	case note.New():
		return max(highest, note.LastEvent).Stream() + restoreSkipsGroups
	case highest > 0:
		return highest.Stream() + restoreSkipsGroups
	}
	return 1
}

// finish takes up what the backup had.
func (r *restoring) finish(ctx context.Context, days []fanfare.Day, first uint64) error {
	next, err := r.bus.NextEvent(ctx)
	if err != nil {
		return err
	}
	if next < first {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the bus has a stream EVENTS of its own, which does not belong to the restored data",
			Hint: "give the restored server a bus without the streams EVENTS and BATCHES"}
	}
	reason := fmt.Sprintf("restored from the backup of %s: see fanfare restore --list, cancel what must not leave twice, resume the rest", r.note.Backup.Format(time.RFC3339))
	if err := r.registry.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeAll}, true, reason); err != nil {
		return err
	}
	if err := r.registry.SkipPlaces(ctx, restoreSkipsPlaces); err != nil {
		return err
	}
	return r.note.Finish(r.dir, func(add func(*backup.Uncertain) error) error {
		for _, day := range days {
			if err := r.day(ctx, day, add); err != nil {
				return err
			}
		}
		return r.events(ctx, add)
	})
}

// day holds the open deliveries of a day, but those that have a due time or are
// parked.
func (r *restoring) day(ctx context.Context, day fanfare.Day, add func(*backup.Uncertain) error) error {
	var open []backup.Uncertain
	err := r.store.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, p fanfare.Progress) {
		open = append(open, backup.Uncertain{Event: fanfare.EventRef{Day: day, Seq: seq}.String(), Messages: messages,
			Unsettled: messages - p.Counts.Settled(), Deferred: p.Counts[fanfare.Deferred]})
	})
	if err != nil || len(open) == 0 {
		return err
	}
	elsewhere, err := r.elsewhere(ctx, day)
	if err != nil {
		return err
	}
	var cutter plan.Cutter
	for i := range open {
		ref, _ := fanfare.ParseEventRef(open[i].Event)
		posted, err := r.store.Posted(ctx, ref)
		if err != nil {
			return err
		}
		open[i].Service, open[i].Topic = posted.Service, posted.Topic
		if err := add(&open[i]); err != nil {
			return err
		}
		manifests, err := r.store.Manifests(ctx, ref)
		if err != nil {
			return err
		}
		for j := range manifests {
			if err := r.cut(ctx, day, posted.Lane, &manifests[j], elsewhere[manifests[j].ID], &cutter); err != nil {
				return err
			}
		}
	}
	return r.store.Rehold(ctx, day, cutter.Batches())
}

// elsewhere lists what of each manifest waits for its time or is parked. It may be
// for an attempt that was made meanwhile.
func (r *restoring) elsewhere(ctx context.Context, day fanfare.Day) (map[fanfare.ManifestID][]fanfare.RecipientRange, error) {
	all := map[fanfare.ManifestID][]fanfare.RecipientRange{}
	note := func(slice *fanfare.RecipientRange) { all[slice.Manifest] = append(all[slice.Manifest], *slice) }
	due, err := r.store.DueBy(ctx, day, time.Unix(math.MaxInt32, 0), math.MaxInt)
	if err != nil {
		return nil, err
	}
	for i := range due {
		note(&due[i].Slice)
	}
	parked, payloads, err := r.store.Parked(ctx, day)
	if err != nil {
		return nil, err
	}
	for i := range parked {
		var batch fanfare.Batch
		if parked[i].Kind == fanfare.ParkedBatch && json.Unmarshal(payloads[i], &batch) == nil {
			for j := range batch.Slices {
				note(&batch.Slices[j])
			}
		}
	}
	return all, nil
}

// cut makes the slices of what is open of a manifest and not elsewhere, those of
// one channel and attempt together.
func (r *restoring) cut(ctx context.Context, day fanfare.Day, lane fanfare.Lane, m *fanfare.Manifest, elsewhere []fanfare.RecipientRange, cutter *plan.Cutter) error {
	attempts := make([]uint16, m.Members()) // the next one of each position; 0: none
	for i := range attempts {
		attempts[i] = 1
	}
	err := r.store.Latest(ctx, day, m.ID, 0, uint32(len(attempts)), func(position uint32, attempt uint16, state fanfare.State) {
		if attempts[position] = attempt + 1; state.Settled() {
			attempts[position] = 0
		}
	})
	if err != nil {
		return err
	}
	for i := range elsewhere {
		for _, ref := range elsewhere[i].Deliveries(day) {
			if attempts[ref.Position] == elsewhere[i].Attempt {
				attempts[ref.Position] = 0
			}
		}
	}
	from := 0
	for i := range m.Sections {
		to := from + m.Sections[i].Members.Len()
		for attempt, positions := range byAttempt(attempts[from:to], uint32(from)) {
			for chunk := range slices.Chunk(positions, fanfare.MaxBatch) {
				cutter.AddDue(day, &fanfare.Due{Channel: m.Sections[i].Channel, Lane: lane, Slice: fanfare.NewRecipientRange(m.ID, attempt, chunk)})
			}
		}
		from = to
	}
	return nil
}

func byAttempt(attempts []uint16, first uint32) map[uint16][]uint32 {
	positions := map[uint16][]uint32{}
	for i, attempt := range attempts {
		if attempt != 0 {
			positions[attempt] = append(positions[attempt], first+uint32(i))
		}
	}
	return positions
}

// events appends what was accepted and not matched. Those that are in a day all
// the same were matched while the backup was taken; they are frozen once.
func (r *restoring) events(ctx context.Context, add func(*backup.Uncertain) error) error {
	return backup.ReadEvents(r.dir, func(group []byte) error {
		events, err := eventgroup.Decode(group, 0)
		if err != nil || len(events) == 0 {
			return errors.Join(err, errors.New("an event group of the backup is damaged"))
		}
		for _, e := range events {
			_, err := r.store.Posted(ctx, e.Ref())
			switch {
			case fanfare.CodeOf(err) == fanfare.NotFound:
				err = add(&backup.Uncertain{Event: e.Ref().String(), Service: e.Service, Topic: e.Topic, Unmatched: true})
			case err == nil:
				// it is among the broadcasts of its day
			}
			if err != nil {
				return err
			}
		}
		_, err = r.bus.AppendEvents(ctx, events[0].Lane, group)
		return err
	})
}
