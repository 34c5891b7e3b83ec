package registry

import (
	"context"

	"fanfare.dev/fanfare/internal/people"
)

// OpenColliding is Open with hashes reduced to the given bits, so that different keys
// collide often.
func OpenColliding(ctx context.Context, opt Options, bits int) (*Registry, error) {
	h := people.NewHasher()
	h.Mask = 1<<bits - 1
	return open(ctx, opt, h)
}
