// Package crash shows that what is promised survives kill -9. Its tests run the
// real binary, built with the tag crashsteps, against a capture server in
// another process, and kill it: at each durable step of the way of an event, and
// at random moments of a large broadcast, while subscriptions are added, changed
// and ended and small events are published, and messages sent to people who are
// named, all the time. Then they compare what
// arrived with what was asked for.
//
// State. What was asked for is a Timeline of each subscription: the changes that
// a client sent, with the moments at which each was sent and was acknowledged.
// What arrived is the capture server's file, which has a line for each message,
// written before it was answered. Judge sees only these two; Reconcile holds the
// product's own account of a broadcast against the second.
//
// What comes back has a test of its own: bounces are handed to the inbound server,
// which is killed between reading them and its answer, and each counts once.
//
// Failure. A change or an event whose answer a kill cut off is sent again until
// it is acknowledged. Between sending and acknowledgement both outcomes are
// right; before and after, only one is.
//
// The same server works on PostgreSQL, which is killed, stopped, cut off and
// silenced while the server is left alone, and killed together with it.
//
// The environment makes the tests larger: CRASH_PEOPLE (subscribers of the large
// broadcast), CRASH_KILLS (random kills for each durability), CRASH_STARTS (that
// lose their database) and CRASH_SEED.
package crash
