package registry

import "context"

// OpenColliding is Open with hashes of which only the given bits remain, so
// that different keys collide all the time.
func OpenColliding(ctx context.Context, opt Options, bits int) (*Registry, error) {
	h := newHasher()
	h.mask = 1<<bits - 1
	return open(ctx, opt, h)
}
