package app

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
	held map[fanfare.DeliveryRef]struct{}
}

func newClaims() *claims { return &claims{held: map[fanfare.DeliveryRef]struct{}{}} }

// take claims what is free of refs and returns it; the rest is in other hands.
func (c *claims) take(refs []fanfare.DeliveryRef) (mine []fanfare.DeliveryRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine = refs[:0]
	for _, ref := range refs {
		if _, taken := c.held[ref]; !taken {
			c.held[ref] = struct{}{}
			mine = append(mine, ref)
		}
	}
	return mine
}

func (c *claims) release(refs ...fanfare.DeliveryRef) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ref := range refs {
		delete(c.held, ref)
	}
}
