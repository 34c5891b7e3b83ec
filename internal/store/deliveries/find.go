package deliveries

import (
	"context"
	"math"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// indexed is the part of an event by which it is found.
type indexed struct {
	Service string `json:"service"`
	Event   struct {
		ID string `json:"id"`
	} `json:"event"`
	Direct struct {
		Reference string                `json:"reference"`
		Notify    *fanfare.NotifyOrigin `json:"notify"`
	} `json:"direct"`
}

// notifyLabel returns the label of a message of a client of GOV.UK Notify, or "".
func (p *indexed) notifyLabel() string {
	if p.Direct.Notify == nil {
		return ""
	}
	return NotifyLabel(p.Direct.Notify.Key, p.Direct.Notify.SMS)
}

// FindEvent returns the newest event of a day whose CloudEvent has the id, or 0 if there is none.
func (s *Store) FindEvent(ctx context.Context, of fanfare.Day, service, id string) (fanfare.EventSeq, error) {
	found, err := s.FindEvents(ctx, of, service, id)
	return append(found, 0)[0], err
}

// FindEvents returns the events of a day whose CloudEvent has the id, newest first. Their sources can be different.
func (s *Store) FindEvents(ctx context.Context, of fanfare.Day, service, id string) ([]fanfare.EventSeq, error) {
	return s.lookUp(ctx, of, historyEventIDs, textKey(service, id), func(p *indexed) bool { return p.Service == service && p.Event.ID == id })
}

// FindReference returns the direct sends of a day that have a reference, newest
// first.
func (s *Store) FindReference(ctx context.Context, of fanfare.Day, service, reference string) ([]fanfare.EventSeq, error) {
	return s.lookUp(ctx, of, historyReferences, textKey(service, reference), func(p *indexed) bool {
		return p.Service == service && p.Direct.Reference == reference
	})
}

// lookUp returns the events of a day with a key of a kind for which the check succeeds, newest first.
func (s *Store) lookUp(ctx context.Context, of fanfare.Day, kind int64, key uint64, is func(*indexed) bool) ([]fanfare.EventSeq, error) {
	return s.search(ctx, of, kind, key, func(in store.Session, candidates []fanfare.EventSeq, position int64) (found []fanfare.EventSeq, err error) {
		add := func(seq fanfare.EventSeq, posted []byte) {
			var p indexed
			if decodePosted(fanfare.EventRef{Day: of, Seq: seq}, posted, &p) == nil && is(&p) {
				found = append(found, seq)
			}
		}
		err = in.EachOf("posted", len(candidates), func(i int) []any { return []any{int64(candidates[i])} }, func(i int, r store.Row) error {
			add(candidates[i], r.Bytes(0))
			return nil
		})
		if err != nil {
			return nil, err
		}
		return found, in.Each("broadcasts_behind", func(r store.Row) error {
			add(fanfare.EventSeq(r.Int64(1)), r.Bytes(3))
			return nil
		}, position, int64(math.MaxInt64))
	})
}

// NotifyLabel returns the label of the messages of clients of GOV.UK Notify with a type of key.
func NotifyLabel(key string, sms bool) string {
	if sms {
		return "notify sms " + key
	}
	return "notify email " + key
}

// LatestNotify returns the latest messages of a day with one of some labels, newest first: at most limit that were
// accepted before an event (0: any).
func (s *Store) LatestNotify(ctx context.Context, of fanfare.Day, service string, labels []string, before fanfare.EventSeq, limit int) (found []fanfare.EventSeq, err error) {
	if before == 0 {
		before = math.MaxInt64
	}
	err = s.snapshot(ctx, of, func(in store.Session) error {
		position, err := historyPosition(in)
		if err != nil {
			return err
		}
		for _, label := range labels {
			latest, err := latestInRuns(in, historyNotify, textKey(service, label), before, limit)
			if err != nil {
				return err
			}
			found = append(found, latest...)
		}
		return in.Each("broadcasts_behind", func(r store.Row) error {
			var p indexed
			seq := fanfare.EventSeq(r.Int64(1))
			if seq < before && decodePosted(fanfare.EventRef{Day: of, Seq: seq}, r.Bytes(3), &p) == nil && p.Service == service && slices.Contains(labels, p.notifyLabel()) {
				found = append(found, seq)
			}
			return nil
		}, position, int64(math.MaxInt64))
	})
	slices.Sort(found)
	slices.Reverse(found)
	found = slices.Compact(found)
	return found[:min(limit, len(found))], err
}

// latestInRuns returns the latest events of a key before an event, at most limit of each run.
func latestInRuns(in store.Session, kind int64, key uint64, before fanfare.EventSeq, limit int) (found []fanfare.EventSeq, err error) {
	runs, err := listRuns(in)
	if err != nil {
		return nil, err
	}
	latest := make([]fanfare.EventSeq, limit) // a ring: the events of a key ascend
	err = in.EachOf("history_block", len(runs), func(i int) []any { return []any{kind, runs[i].segment, int64(key)} }, func(_ int, r store.Row) error {
		n := 0
		eachPair(r.Bytes(0), func(p pair) bool {
			if p.key == key && p.seq < before {
				latest[n%limit] = p.seq
				n++
			}
			return p.key < key || p.key == key && p.seq < before
		})
		found = append(found, latest[:min(n, limit)]...)
		return nil
	})
	return found, err
}

// CountNotify counts the messages of a day with one of some labels.
func (s *Store) CountNotify(ctx context.Context, of fanfare.Day, service string, labels []string) (n int, err error) {
	all, err := s.LatestNotify(ctx, of, service, labels, 0, maxCounted)
	return len(all), err
}

// maxCounted bounds CountNotify.
const maxCounted = 1_000_000
