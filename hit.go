package fanfare

// A Hit is one subscription that wants an event.
type Hit struct {
	Place      RowID  // of the subscription
	Subscriber RowID  // its subscriber, in the same partition
	Channel    uint16 // the channel's number, see registry
	Rule       int16  // position in the topic's order of rules; -1 for an own filter, or none
	Slot       uint16 // when it is due: the number of its cadence and time zone, see registry; 0: at once
}
