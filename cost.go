package fanfare

// A Cost is the time that a condition adds to the matching of each event of its topic.
type Cost struct {
	Nanos int64  // approximate time per event; 0 if an index finds the condition, so that other events do not evaluate it
	Why   string // why no index finds the condition; "" if one does
}

// Indexed reports whether an index finds the condition.
func (c Cost) Indexed() bool { return c.Nanos == 0 }
