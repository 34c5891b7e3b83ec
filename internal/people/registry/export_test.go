package registry

import (
	"context"

	"fanfare.dev/fanfare/internal/people"
)

// OpenColliding is Open with hashes of which only the given bits remain, so
// that different keys collide all the time.
func OpenColliding(ctx context.Context, opt Options, bits int) (*Registry, error) {
	h := people.NewHasher()
	h.Mask = 1<<bits - 1
	return open(ctx, opt, h)
}
