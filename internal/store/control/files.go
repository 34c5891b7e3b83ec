package control

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/checksum"
	"fanfare.dev/fanfare/internal/store"
)

// File returns the bytes of a template file, or nil if it is not stored. It fails with a DamagedError if they have changed.
func (s *Store) File(ctx context.Context, sum fanfare.Sum) (content []byte, err error) {
	err = s.part.Read(ctx, func(from store.Session) error {
		content = nil
		return from.Each("template_file", func(r store.Row) error {
			content = r.Bytes(0)
			return nil
		}, sum[:])
	})
	if err == nil && content != nil && fanfare.SumOf(content) != sum {
		return nil, checksum.Damaged("the template file " + sum.String())
	}
	return content, err
}
