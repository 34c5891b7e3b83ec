package fanfare

// A Hit is a subscription that matches an event.
type Hit struct {
	Place      RowID  // of the subscription
	Subscriber RowID  // its subscriber, in the same partition
	Channel    uint16 // number of the channel
	Rule       int16  // position in the topic's order of rules; -1 for a filter or no condition
	Slot       uint16 // number of the cadence and time zone; 0 for immediate
}
