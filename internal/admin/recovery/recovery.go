// Package recovery restores the open work of a server at the first start after a restore, or after the embedded
// bus was lost.
//
// State. The note of the restore (package backup) and the file bus.lost in the data directory; they are removed when
// the work is done.
//
// Failure. Each step can be repeated, so the start after a killed one repeats the work. Package server calls it.
package recovery

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
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/eventgroup"
	"fanfare.dev/fanfare/internal/pipeline/plan"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// A restored server does not know which ids were assigned after the backup. It skips as many as could have been, so
// that no id is used twice.
const (
	skippedGroups = 1 << 32 // of EVENTS
	skippedRows   = 1 << 18 // of each partition
	rowsInSeconds = 1 << 14 // of each partition, far more than are created in the seconds before a loss of power
)

// A Recovery restores open work.
type Recovery struct {
	Dir      string
	Note     *backup.Note // of the restore; nil without one
	Store    *deliveries.Store
	Registry *registry.Registry
	Bus      *bus.Bus
}

// FirstGroup returns the first sequence number of a new stream EVENTS. It is far above all numbers in the store,
// because events that were accepted but not matched also have ids.
func FirstGroup(highest fanfare.EventSeq, note *backup.Note) uint64 {
	switch {
	case note.New():
		return max(highest, note.LastEvent).Stream() + skippedGroups
	case highest > 0:
		return highest.Stream() + skippedGroups
	}
	return 1
}

// Restore pauses everything and holds the open deliveries of the backup, so that a resume finds them. It appends the
// events that were not matched.
func (r *Recovery) Restore(ctx context.Context, days []fanfare.Day, first uint64) error {
	next, err := r.Bus.NextEvent(ctx)
	if err != nil {
		return err
	}
	if next < first {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the bus has a stream EVENTS that does not belong to the restored data",
			Hint: "connect the restored server to a bus without the streams EVENTS and BATCHES"}
	}
	reason := fmt.Sprintf("restored from the backup of %s; run fanfare restore --list, cancel broadcasts that must not be sent twice, and resume the others", r.Note.Backup.Format(time.RFC3339))
	if err := r.Registry.SetPaused(ctx, fanfare.Scope{Kind: fanfare.ScopeAll}, true, reason); err != nil {
		return err
	}
	if err := r.Registry.SkipRowIDs(ctx, skippedRows); err != nil {
		return err
	}
	return r.Note.Finish(r.Dir, func(add func(*backup.Uncertain) error) error {
		for _, day := range days {
			if err := r.holdDay(ctx, day, add); err != nil {
				return err
			}
		}
		return r.events(ctx, add)
	})
}

// holdDay holds the open deliveries of a day, except those that have a due time or are parked.
func (r *Recovery) holdDay(ctx context.Context, day fanfare.Day, add func(*backup.Uncertain) error) error {
	var open []backup.Uncertain
	err := r.Store.Open(ctx, day, func(seq fanfare.EventSeq, messages int64, p fanfare.Progress) {
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
	var cutter plan.Batcher
	for i := range open {
		ref, _ := fanfare.ParseEventRef(open[i].Event)
		posted, err := r.Store.Posted(ctx, ref)
		if err != nil {
			return err
		}
		open[i].Service, open[i].Topic = posted.Service, posted.Topic
		if err := add(&open[i]); err != nil {
			return err
		}
		manifests, err := r.Store.Manifests(ctx, ref)
		if err != nil {
			return err
		}
		for j := range manifests {
			if err := r.cut(ctx, day, posted.Lane, &manifests[j], elsewhere[manifests[j].ID], &cutter); err != nil {
				return err
			}
		}
	}
	return r.Store.Rehold(ctx, day, cutter.Batches())
}

// elsewhere lists, for each manifest, the deliveries that have a due time or are parked. The attempt that they wait
// for may have been made in the meantime.
func (r *Recovery) elsewhere(ctx context.Context, day fanfare.Day) (map[fanfare.ManifestID][]fanfare.RecipientRange, error) {
	all := map[fanfare.ManifestID][]fanfare.RecipientRange{}
	note := func(slice *fanfare.RecipientRange) { all[slice.Manifest] = append(all[slice.Manifest], *slice) }
	due, err := r.Store.DueBy(ctx, day, time.Unix(math.MaxInt32, 0), math.MaxInt)
	if err != nil {
		return nil, err
	}
	for i := range due {
		note(&due[i].Slice)
	}
	parked, payloads, err := r.Store.Parked(ctx, day)
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

// cut adds to cutter the open deliveries of a manifest that are not in elsewhere, grouped by channel and attempt.
func (r *Recovery) cut(ctx context.Context, day fanfare.Day, lane fanfare.Lane, m *fanfare.Manifest, elsewhere []fanfare.RecipientRange, cutter *plan.Batcher) error {
	attempts := make([]uint16, m.Members()) // the next attempt of each position; 0: none
	for i := range attempts {
		attempts[i] = 1
	}
	err := r.Store.Latest(ctx, day, m.ID, 0, uint32(len(attempts)), func(position uint32, attempt uint16, state fanfare.State) {
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

// events appends the events that were accepted and not matched. Some were matched while the backup was taken; the
// store matches an event only once.
func (r *Recovery) events(ctx context.Context, add func(*backup.Uncertain) error) error {
	return backup.ReadEvents(r.Dir, func(group []byte) error {
		events, err := eventgroup.Decode(group, 0)
		if err != nil || len(events) == 0 {
			return errors.Join(err, errors.New("an event group of the backup is damaged"))
		}
		for _, e := range events {
			_, err := r.Store.Posted(ctx, e.Ref())
			switch {
			case fanfare.CodeOf(err) == fanfare.NotFound:
				err = add(&backup.Uncertain{Event: e.Ref().String(), Service: e.Service, Topic: e.Topic, Unmatched: true})
			case err == nil:
				// matched while the backup was taken
			}
			if err != nil {
				return err
			}
		}
		_, err = r.Bus.AppendEvents(ctx, events[0].Lane, group)
		return err
	})
}
