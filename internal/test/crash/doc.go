// Package crash shows that what is promised survives kill -9. Its tests run the
// real binary, built with the tag crashsteps, against a capture server in
// another process, and kill it: at each durable step of the way of an event, and
// at random moments of a large broadcast, while subscriptions are added, changed
// and ended and small events are published, and messages sent to people who are
// named, all the time. Then they compare what
// arrived with what was asked for.
//
// State. A Timeline of each subscription has the changes that a client sent, with the
// times at which each was sent and acknowledged. The file of the capture server has a
// line for each message that arrived, written before the message was answered. Judge
// sees only these two. Reconcile compares the counts of a broadcast with the file.
//
// Bounces have a test of their own: the inbound server is killed between reading a bounce
// and its answer, and each bounce counts once.
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
