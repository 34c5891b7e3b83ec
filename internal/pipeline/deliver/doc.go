// Package deliver sends the messages of channels. A Sender is one channel: it takes batches
// of jobs, distributes them over its connections, asks the gate before each message is
// sent, decides what follows from the driver's outcome (retry.go), and records the outcome
// before the connection sends its next body. The dispatch stage submits the batches, package
// channels makes one Sender per channel, and the subpackages smtp, webhook, file and
// capture are the drivers.
//
// A job waits by lane and flow (waiting.go), for the rate of its broadcast
// (broadcast_rate.go) or for its destination (throttled.go). It is active while a
// connection holds it (conn_queue.go), and in flight from Release to Report (inflight.go).
// settle.go ends or postpones it.
//
// State. The package stores nothing: a batch belongs to a lease of the bus, and
// Batch.Finish returns the lease when each job was settled, deferred or left unsettled.
//
// Failure. A relay that cannot be reached uses up no attempts: its connections move to the
// other relays of the channel, or jobs wait in the sender while one connection at a time
// tries the relay with growing pauses. A connection that breaks during a message defers
// that message. A panic of a driver counts as a broken connection: a released message is
// deferred, the others return to the queue.
package deliver
