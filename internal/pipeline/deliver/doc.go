// Package deliver sends. An Outlet is one channel's way out: it takes batches
// of jobs, spreads their jobs over its connections, asks the gate once more
// before each message leaves, decides what follows from the driver's answer,
// and has the outcome recorded before the connection sends the next body, or the
// outcomes of all that left together (driver.Queue).
//
// State. Nothing is kept here: a batch belongs to a lease of the bus, and ends
// with one word to its owner (Finish), when each of its jobs was settled,
// deferred, or left alone.
//
// Failure. A relay that cannot be reached consumes no attempts: its connections
// go to the other relays of the channel, or jobs wait in the outlet, while one
// connection at a time tries it with growing pauses. A connection that
// breaks under a message defers that message. A panic of a driver counts as a
// broken connection: a message that it had begun is deferred, the others leave
// by the next one.
package deliver
