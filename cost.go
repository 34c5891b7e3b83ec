package fanfare

// A Cost says what a condition costs every event of its topic.
type Cost struct {
	Nanos int64  // about, for an event; 0: an index leads to the condition, and other events do not meet it
	Why   string // no index does; "" where one does
}

// Indexed reports whether an index leads to the condition.
func (c Cost) Indexed() bool { return c.Nanos == 0 }
