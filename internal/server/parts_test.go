package server

import "time"

// setClock is set by hand.
type setClock struct{ now time.Time }

func (c *setClock) Now() time.Time { return c.now }
