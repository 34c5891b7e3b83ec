package checksum

// A Damage is a damaged value that a verification of stored data found.
type Damage struct {
	Subject string // the value, for example "the event evt-20261120-1a2b"
	Effect  string // what no longer works
	Restore string // what to do
	Event   string // id of the event that is affected, or ""
	Count   int    // of affected deliveries; 0 if unknown or none
}

// A Report receives the results of a verification. Its functions are called by one goroutine.
type Report struct {
	Verified func(bytes int) // a value has a checksum, which matches
	Without  func()          // an older version stored the value without a checksum
	Damaged  func(*Damage)
}
