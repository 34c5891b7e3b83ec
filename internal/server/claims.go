package server

import (
	"sync"

	"fanfare.dev/fanfare"
)

// claims are the deliveries that are in this process's hands. A hint may come
// twice, in two batches at the same time; who claims a delivery first sends it,
// and reads what is settled only after that. The other batch comes again later:
// what it asked for may be a retry of what is still under way.
type claims struct {
	mu   sync.Mutex
	held map[stretch]uint64 // a bit for each delivery that is held; no stretch without one
}

// A stretch is 64 deliveries of a manifest that are neighbours, as those of a batch
// mostly are.
type stretch struct {
	day      fanfare.Day
	manifest fanfare.ManifestID
	at       uint32 // of 64 positions
}

func stretchOf(ref fanfare.DeliveryRef) (of stretch, bit uint64) {
	return stretch{ref.Day, ref.Manifest, ref.Position / 64}, 1 << (ref.Position % 64)
}

func newClaims() *claims { return &claims{held: map[stretch]uint64{}} }

// Take claims what is free of refs and returns it; the rest is in other hands.
func (c *claims) Take(refs []fanfare.DeliveryRef) (mine []fanfare.DeliveryRef) {
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

func (c *claims) Release(refs ...fanfare.DeliveryRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.each(refs, func(held, bit uint64, _ fanfare.DeliveryRef) uint64 { return held &^ bit })
}

// each has what is held changed for each of refs; neighbours are looked up once. The
// caller holds mu.
func (c *claims) each(refs []fanfare.DeliveryRef, change func(held, bit uint64, ref fanfare.DeliveryRef) uint64) {
	for i := 0; i < len(refs); {
		of, bit := stretchOf(refs[i])
		was := c.held[of]
		held := was
		for same := of; same == of; {
			held = change(held, bit, refs[i])
			if i++; i == len(refs) {
				break
			}
			same, bit = stretchOf(refs[i])
		}
		switch {
		case held == 0:
			delete(c.held, of)
		case held != was:
			c.held[of] = held
		}
	}
}
