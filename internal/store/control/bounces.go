package control

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/store"
)

// AddBounces stores bounces and complaints, each message of an address once. For each element of the list, in order, it returns everything
// that is stored for the address.
func (s *Store) AddBounces(ctx context.Context, list []BounceRecord) (all [][]BounceRecord, err error) {
	err = s.part.Write(ctx, func(in store.Session) error {
		all = make([][]BounceRecord, len(list))
		err := in.Insert("bounce_insert", len(list), func(i int, to store.Values) {
			b := &list[i]
			bindAddress(to, b)
			to.Int64(int64(b.Delivery.Day))
			to.Int64(int64(b.Delivery.Manifest))
			to.Int64(int64(b.Delivery.Position))
			to.Int64(int64(b.Kind))
			to.Int64(b.At)
		})
		if err != nil {
			return err
		}
		return in.EachOf("bounces_of", len(list), func(i int) []any {
			return []any{int64(list[i].Service), int64(list[i].AddressKind), list[i].Hash[:]}
		}, func(i int, r store.Row) error {
			b := BounceRecord{Service: list[i].Service, AddressKind: list[i].AddressKind, Hash: list[i].Hash, Kind: BounceKind(r.Int64(0)), At: r.Int64(1)}
			all[i] = append(all[i], b)
			return nil
		})
	})
	return all, err
}

func bindAddress(to store.Values, b *BounceRecord) {
	to.Int64(int64(b.Service))
	to.Int64(int64(b.AddressKind))
	to.Bytes(b.Hash[:])
}

// DeleteBounces deletes bounces and complaints that are older than a time.
func (s *Store) DeleteBounces(ctx context.Context, before time.Time) error {
	return s.part.Write(ctx, func(in store.Session) error { return in.Run("bounces_trim", before.UnixNano()) })
}
