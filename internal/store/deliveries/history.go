package deliveries

import (
	"cmp"
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// The history of a subscriber is found in sorted runs of (subscriber, event) pairs. They are
// built from the manifests outside of the hot path; a lookup reads one block of each run.
// Manifests that are not in a run yet are searched directly, so the answer is complete even if
// the runs lag.

// The kinds of keys. The numbers are stored.
const (
	historySubscribers = iota // place of a subscriber
	historyEventIDs           // hash of service and id of the CloudEvent
	historyReferences         // hash of service and reference, of direct sends that have one
	historyNotify             // hash of service and label, of messages of clients of GOV.UK Notify
	historyKinds
)

type pair struct {
	key uint64
	seq fanfare.EventSeq
}

func comparePairs(a, b pair) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.seq, b.seq))
}

func appendPairs(b []byte, pairs []pair) []byte {
	var before pair
	for _, p := range pairs {
		b = binary.AppendUvarint(b, p.key-before.key)
		b = binary.AppendVarint(b, int64(p.seq)-int64(before.seq))
		before = p
	}
	return b
}

// eachPair decodes a block until visit returns false.
func eachPair(b []byte, visit func(pair) bool) {
	var at pair
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		if n <= 0 {
			return
		}
		seqDelta, m := binary.Varint(b[n:])
		if m <= 0 {
			return
		}
		b = b[n+m:]
		at.key += delta
		at.seq += fanfare.EventSeq(seqDelta)
		if !visit(at) {
			return
		}
	}
}

// textKey returns a 63-bit hash, so that its order is the same as a signed number.
func textKey(service, text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(service))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return h.Sum64() >> 1
}

// History returns the events of a day that have a delivery to a subscriber,
// newest first.
func (s *Store) History(ctx context.Context, of fanfare.Day, subscriber fanfare.RowID) ([]fanfare.EventSeq, error) {
	return s.search(ctx, of, historySubscribers, uint64(subscriber), func(in store.Session, found []fanfare.EventSeq, position int64) ([]fanfare.EventSeq, error) {
		err := in.Each("manifests_behind", func(r store.Row) error {
			m, err := manifestAt(of, r)
			if err == nil && len(m.PositionsOf(subscriber)) > 0 {
				found = append(found, m.ID.Event())
			}
			return err
		}, position, int64(subscriber.Partition()))
		return found, err
	})
}

// search returns the events of a key of a kind, newest first: the events in the runs, and those that choose returns for
// the events after a position.
func (s *Store) search(ctx context.Context, of fanfare.Day, kind int64, key uint64,
	choose func(in store.Session, inRuns []fanfare.EventSeq, position int64) ([]fanfare.EventSeq, error),
) (found []fanfare.EventSeq, err error) {
	err = s.snapshot(ctx, of, func(in store.Session) error {
		position, err := historyPosition(in)
		if err != nil {
			return err
		}
		inRuns, err := findInRuns(in, kind, key)
		if err != nil {
			return err
		}
		found, err = choose(in, inRuns, position)
		return err
	})
	slices.Sort(found)
	slices.Reverse(found)
	return slices.Compact(found), err
}

// findInRuns returns the events of a key in all runs.
func findInRuns(in store.Session, kind int64, key uint64) ([]fanfare.EventSeq, error) {
	runs, err := listRuns(in)
	if err != nil {
		return nil, err
	}
	var found []fanfare.EventSeq
	err = in.EachOf("history_block", len(runs), func(i int) []any { return []any{kind, runs[i].segment, int64(key)} }, func(_ int, r store.Row) error {
		eachPair(r.Bytes(0), func(p pair) bool {
			if p.key == key {
				found = append(found, p.seq)
			}
			return p.key <= key
		})
		return nil
	})
	return found, err
}

// historyPosition is the last event that is in a run, in the order of freezing.
func historyPosition(in store.Session) (frozen int64, err error) {
	return number(in, "history_position")
}

// HistoryLag counts the events of a day that are not in a run yet.
func (s *Store) HistoryLag(ctx context.Context, of fanfare.Day) (lag int64, err error) {
	err = s.read(ctx, of, func(in store.Session) error {
		position, err := historyPosition(in)
		if err != nil {
			return err
		}
		lag, err = number(in, "behind", position)
		return err
	})
	return lag, err
}
