package deliveries

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// carryAtOnce is the number of manifests that one transaction moves.
const carryAtOnce = 32

// A Carrier decides which waiting recipients of a manifest move to other runs.
type Carrier interface {
	// Split returns the recipients that stay and those that move. The manifests have the id of
	// the one that is split.
	Split(*fanfare.Manifest) (stays fanfare.Manifest, goes []fanfare.Gathered)
	// Join returns the union of two manifests with one id.
	Join(a, b *fanfare.Manifest) fanfare.Manifest
}

// Carry moves waiting recipients of a day from one run to others. One transaction removes a
// recipient from the old run and adds it to the new one. Carry returns the runs for which the
// recipients wait now. If it is called again after an error, it moves the rest.
func (s *Store) Carry(ctx context.Context, of fanfare.Day, from Waiting, by Carrier) (to []Waiting, err error) {
	var ids []fanfare.ManifestID
	err = s.Gathered(ctx, of, from.Slot, from.Due, func(m *fanfare.Manifest) error {
		if _, goes := by.Split(m); len(goes) > 0 {
			ids = append(ids, m.ID)
		}
		return nil
	})
	for err == nil && len(ids) > 0 {
		some := ids[:min(carryAtOnce, len(ids))]
		ids = ids[len(some):]
		var waiting []Waiting
		err = s.write(ctx, of, func(in store.Session) error {
			waiting = nil
			for _, id := range some {
				runs, err := carry(in, of, from, id, by)
				if err != nil {
					return err
				}
				waiting = append(waiting, runs...)
			}
			waiting = each(waiting)
			return putPending(in, waiting)
		})
		to = append(to, waiting...)
	}
	return each(to), err
}

// carry splits one manifest.
func carry(in store.Session, of fanfare.Day, from Waiting, id fanfare.ManifestID, by Carrier) (to []Waiting, err error) {
	is, err := gatheredOne(in, of, from, id)
	if err != nil || is == nil {
		return nil, err
	}
	stays, goes := by.Split(is)
	var rows []*fanfare.Gathered
	if stays.Members() > 0 {
		rows = append(rows, &fanfare.Gathered{Slot: from.Slot, Due: from.Due, Manifest: stays})
	} else if err := in.Run("gathered_delete", append(from.key(), int64(id))...); err != nil {
		return nil, err
	}
	for i := range goes {
		w := Waiting{Slot: goes[i].Slot, Due: goes[i].Due, Service: from.Service}
		there, err := gatheredOne(in, of, w, id)
		if err != nil {
			return nil, err
		}
		if there != nil {
			goes[i].Manifest = by.Join(there, &goes[i].Manifest)
		}
		rows, to = append(rows, &goes[i]), append(to, w)
	}
	return to, putGathered(in, rows)
}

func gatheredOne(in store.Session, of fanfare.Day, w Waiting, id fanfare.ManifestID) (m *fanfare.Manifest, err error) {
	err = in.Each("gathered_one", func(r store.Row) error {
		one, err := manifestAt(of, r)
		m = &one
		return err
	}, append(w.key(), int64(id))...)
	return m, err
}
