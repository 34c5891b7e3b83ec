package inbound

import "sync/atomic"

// Counts are what the server did since its start.
type Counts struct {
	Open       int   // sessions now
	Sessions   int64 // that were begun
	TurnedAway int64 // connections beyond a limit

	Taken        int64 // messages after which 250 was said
	Bounces      int64 // of these, for an address of what comes back
	Unsubscribes int64 // of these, wishes to leave
	Ignored      int64 // of these, programs that answered where wishes to leave go
	Kept         int64 // of these, for postmaster or abuse

	NotNow   int64 // messages that could not be kept, and come again
	Refused  int64 // recipients that are nobody
	TooLarge int64 // messages
	Broken   int64 // sessions that were ended for a line or an order that two readers could see differently
	Panics   int64
}

type counters struct {
	sessions, turnedAway, taken, bounces, unsubscribes, ignored, kept atomic.Int64
	notNow, refused, tooLarge, broken, panics                         atomic.Int64
}

// Counts returns what was done so far.
func (s *Server) Counts() Counts {
	s.mu.Lock()
	open := len(s.open)
	s.mu.Unlock()
	c := &s.counters
	return Counts{
		Open: open, Sessions: c.sessions.Load(), TurnedAway: c.turnedAway.Load(),
		Taken: c.taken.Load(), Bounces: c.bounces.Load(), Unsubscribes: c.unsubscribes.Load(), Ignored: c.ignored.Load(), Kept: c.kept.Load(),
		NotNow: c.notNow.Load(), Refused: c.refused.Load(), TooLarge: c.tooLarge.Load(), Broken: c.broken.Load(), Panics: c.panics.Load(),
	}
}
