package deliveries

import (
	"encoding/json"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// returned are the entries of a group that are to be kept: those of attempts, and
// of those that something came back of the ones whose delivery is Accepted. The
// latter get their number, and the counts of completed broadcasts follow them, so
// that a group which is committed again changes nothing.
func returned(in store.Session, group *fanfare.Commit) ([]fanfare.Entry, error) {
	var at []int
	for i := range group.Entries {
		if group.Entries[i].Returned {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return group.Entries, nil
	}
	type newest struct {
		attempt uint16
		state   fanfare.State
	}
	now := map[fanfare.DeliveryRef]newest{}
	err := in.EachOf("latest", len(at), func(i int) []any {
		ref := group.Entries[at[i]].Delivery
		return []any{int64(ref.Manifest), int64(ref.Position), int64(ref.Position) + 1}
	}, func(i int, r store.Row) error {
		now[group.Entries[at[i]].Delivery] = newest{uint16(r.Int64(1)), fanfare.State(r.Int64(2))}
		return nil
	})
	if err != nil {
		return nil, err
	}
	corrected := map[int]bool{}
	for _, i := range group.Corrections {
		corrected[i] = true
	}
	changes := map[fanfare.EventSeq]*correction{}
	var changed []fanfare.EventSeq
	entries := make([]fanfare.Entry, 0, len(group.Entries))
	for i := range group.Entries {
		e := group.Entries[i]
		if !e.Returned {
			entries = append(entries, e)
			if last := now[e.Delivery]; e.Attempt > last.attempt {
				now[e.Delivery] = newest{e.Attempt, e.State}
			}
			continue
		}
		last := now[e.Delivery]
		if last.state != fanfare.Accepted {
			continue
		}
		e.Attempt = last.attempt + 1
		now[e.Delivery] = newest{e.Attempt, e.State}
		entries = append(entries, e)
		if seq := e.Delivery.Manifest.Event(); corrected[i] {
			if changes[seq] == nil {
				changes[seq] = new(correction)
				changed = append(changed, seq)
			}
			change := changes[seq]
			change.counts[fanfare.Accepted]--
			change.counts[e.State]++
			if e.State.HasReason() {
				change.reasons = append(change.reasons, &entries[len(entries)-1])
			}
		}
	}
	return entries, correct(in, changed, changes)
}

// A correction changes the counts of a completed broadcast.
type correction struct {
	counts  fanfare.Counts // differences
	reasons []*fanfare.Entry
}

// correct changes the counts of completed broadcasts.
func correct(in store.Session, events []fanfare.EventSeq, changes map[fanfare.EventSeq]*correction) error {
	counts, reasons := make([]fanfare.Counts, len(events)), make([]fanfare.Reasons, len(events))
	found := make([]bool, len(events))
	err := in.EachOf("completion_counts", len(events), func(i int) []any { return []any{int64(events[i])} }, func(i int, r store.Row) (err error) {
		found[i] = true
		if reasons[i], err = readReasons(r.Bytes(1)); err != nil {
			return err
		}
		return json.Unmarshal(r.Bytes(0), &counts[i])
	})
	if err != nil {
		return err
	}
	for i, seq := range events {
		if !found[i] {
			return fmt.Errorf("the counts of the completed broadcast %x are missing", uint64(seq))
		}
		change := changes[seq]
		for state, n := range change.counts {
			counts[i][state] += n
		}
		for _, e := range change.reasons {
			reasons[i] = reasons[i].Add(e)
		}
		text, err := json.Marshal(counts[i])
		if err != nil {
			return err
		}
		why, err := reasonsText(reasons[i])
		if err != nil {
			return err
		}
		if err := in.Run("completion_correct", string(text), why, int64(seq)); err != nil {
			return err
		}
	}
	return nil
}
