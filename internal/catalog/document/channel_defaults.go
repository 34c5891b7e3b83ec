package document

import (
	"time"

	"fanfare.dev/fanfare/internal/catalog"
)

// Defaults and bounds of a channel.
const (
	defaultConnections = 50
	defaultSendTimeout = catalog.Duration(time.Minute)
	defaultExpiry      = catalog.Duration(24 * time.Hour)
	maxConnections     = 1000
	maxRetries         = 50
)

// maxMulticast bounds the recipients of a message in one transaction. Every server
// accepts 100 (RFC 5321, section 4.5.3.1.8).
const maxMulticast = 1000

// The messages in a request to a worker.
const (
	defaultWorkerBatch = 50
	maxWorkerBatch     = 1000
)

// defaultRate is low, because the limits of an unknown relay are unknown. An operator who
// knows the relay raises it.
var defaultRate = catalog.Rate{Count: 30, Per: time.Second}

// defaultRetry is the retry schedule: the waits between attempts, without jitter.
var defaultRetry = []catalog.Duration{
	catalog.Duration(30 * time.Second), catalog.Duration(2 * time.Minute), catalog.Duration(10 * time.Minute),
	catalog.Duration(time.Hour), catalog.Duration(4 * time.Hour), catalog.Duration(12 * time.Hour),
}
