package mailbox

// Yields reports whether the indexer waits for deliveries.
func Yields(s *Store) bool { return s.yieldsToDeliveries() }
