package dispatch

import (
	"sync"

	"fanfare.dev/fanfare"
)

// Claims contains the deliveries that this process is working on. A delivery may be in two batches
// at the same time: the batch that claims it first reads whether it is settled and sends it. The
// other batch is delivered again later, because it may be for a retry of that delivery.
type Claims struct {
	mu   sync.Mutex
	held map[block]uint64 // a bit for each delivery in work; blocks without one are deleted
}

// block is 64 neighbouring deliveries of a manifest, since a batch mostly has neighbours.
type block struct {
	day      fanfare.Day
	manifest fanfare.ManifestID
	at       uint32 // of 64 positions
}

func blockOf(ref fanfare.DeliveryRef) (of block, bit uint64) {
	return block{ref.Day, ref.Manifest, ref.Position / 64}, 1 << (ref.Position % 64)
}

func newClaims() *Claims { return &Claims{held: map[block]uint64{}} }

// Take claims the deliveries of refs that are free and returns them. It reuses refs.
func (c *Claims) Take(refs []fanfare.DeliveryRef) (mine []fanfare.DeliveryRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine = refs[:0]
	c.each(refs, func(held, bit uint64, ref fanfare.DeliveryRef) uint64 {
		if held&bit == 0 {
			mine = append(mine, ref)
		}
		return held | bit
	})
	return mine
}

// Release ends claims.
func (c *Claims) Release(refs ...fanfare.DeliveryRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.each(refs, func(held, bit uint64, _ fanfare.DeliveryRef) uint64 { return held &^ bit })
}

// each changes the bits of each of refs and looks up neighbours once. The caller holds mu.
func (c *Claims) each(refs []fanfare.DeliveryRef, change func(held, bit uint64, ref fanfare.DeliveryRef) uint64) {
	for i := 0; i < len(refs); {
		of, bit := blockOf(refs[i])
		was := c.held[of]
		held := was
		for same := of; same == of; {
			held = change(held, bit, refs[i])
			if i++; i == len(refs) {
				break
			}
			same, bit = blockOf(refs[i])
		}
		switch {
		case held == 0:
			delete(c.held, of)
		case held != was:
			c.held[of] = held
		}
	}
}
