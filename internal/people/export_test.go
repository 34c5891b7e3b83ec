package people

// Plain returns the put without the mark that DecodeSubscription sets.
func (p SubscriptionPut) Plain() SubscriptionPut {
	p.decoded = false
	return p
}
