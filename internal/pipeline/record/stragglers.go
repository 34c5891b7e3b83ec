package record

// stragglers estimates how many messages are in flight for longer than a group stays open.
// If a next hop takes seconds for two messages, no group waits for them.
type stragglers struct {
	known  int64 // messages that are missing whenever a group closes
	fewest int64 // the lowest number of messages missing in the last rounds, if more than known
	rounds int   // groups in a row with more missing than known
	groups int   // since a group waited for all
}

const (
	// missedRounds is the number of groups in a row after which missing messages become
	// known.
	missedRounds = 4
	// waitForAll is the number of groups after which one waits for all messages again, in
	// case fewer are late.
	waitForAll = 16
)

// ignore returns the number of messages for which the next group does not wait.
func (s *stragglers) ignore() int64 {
	if s.groups++; s.groups >= waitForAll {
		s.groups = 0
		return 0
	}
	return s.known
}

// groupClosed notes how many messages were missing when a group closed.
func (s *stragglers) groupClosed(missing int64) {
	if missing <= s.known {
		if s.rounds = 0; s.groups == 0 {
			s.known = missing
		}
		return
	}
	if s.rounds++; s.rounds == 1 || missing < s.fewest {
		s.fewest = missing
	}
	if s.rounds >= missedRounds {
		s.known, s.rounds = s.fewest, 0
	}
}
