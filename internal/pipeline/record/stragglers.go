package record

// A tail tells how many messages a group need not wait for: so many are on the wire
// for longer than any group stays open. While a next hop takes seconds for two of
// them, each group would wait for these in vain.
type stragglers struct {
	known  int64 // messages that are on the wire whenever a group closes
	fewest int64 // of the groups in a row that closed without more: the fewest that were missing
	rounds int   // how many groups that is
	groups int   // since one waited for all
}

const (
	// missedInARow is how many groups in a row have to close without some messages
	// before these are not waited for.
	missedRounds = 4
	// waitForAll is after how many groups all are waited for again: fewer may be late.
	waitForAll = 16
)

// ignore is how many messages the next group does not wait for.
func (t *stragglers) ignore() int64 {
	if t.groups++; t.groups >= waitForAll {
		t.groups = 0
		return 0
	}
	return t.known
}

// groupClosed takes in how many messages were missing when a group closed.
func (t *stragglers) groupClosed(missing int64) {
	if missing <= t.known {
		if t.rounds = 0; t.groups == 0 {
			t.known = missing
		}
		return
	}
	if t.rounds++; t.rounds == 1 || missing < t.fewest {
		t.fewest = missing
	}
	if t.rounds >= missedRounds {
		t.known, t.rounds = t.fewest, 0
	}
}
