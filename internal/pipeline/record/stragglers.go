package record

// A tail tells how many messages a group need not wait for: so many are on the wire
// for longer than any group stays open. While a next hop takes seconds for two of
// them, each group would wait for these in vain.
type tail struct {
	late   int64 // messages that are on the wire whenever a group closes
	least  int64 // of the groups in a row that closed without more: the fewest that were missing
	row    int   // how many groups that is
	groups int   // since one waited for all
}

const (
	// missedInARow is how many groups in a row have to close without some messages
	// before these are not waited for.
	missedInARow = 4
	// waitForAll is after how many groups all are waited for again: fewer may be late.
	waitForAll = 16
)

// spare is how many messages the next group does not wait for.
func (t *tail) spare() int64 {
	if t.groups++; t.groups >= waitForAll {
		t.groups = 0
		return 0
	}
	return t.late
}

// closed takes in how many messages were missing when a group closed.
func (t *tail) closed(missing int64) {
	if missing <= t.late {
		if t.row = 0; t.groups == 0 {
			t.late = missing
		}
		return
	}
	if t.row++; t.row == 1 || missing < t.least {
		t.least = missing
	}
	if t.row >= missedInARow {
		t.late, t.row = t.least, 0
	}
}
