// Package replica lets other nodes of a cluster match events for the node that leads. Each of them has a copy of the
// matching index, in memory:
//
//	leader                                             matching node
//	registry --> Feed --> index                        copy of the index
//	               |  ==== changes, in order =====>     |
//	matcher  --> Node ==== events of a topic =====>    match
//	              ^  <==== hits ====================     |
//
// A node only evaluates conditions. The leader reads the events, knows the previous event of each key, plans and commits.
// The order of events, crossings and digests therefore do not depend on which node matched an event, or whether it failed.
//
// A copy is complete in this sense: the hits of an event include each change that was in the index of the leader when
// the event was sent. Changes and events use one connection, and the node applies a change before it reads the next frame.
//
// State. The Feed has the links; a Copy has the index of its node. Nothing is stored. A new copy gets the definitions of
// all topics, then all subscriptions as the database has them, and the changes that happen meanwhile. A change is newer
// than what the database had: the copy ignores a stored subscription that a change has mentioned.
//
// Failure. When a link ends, the leader matches the events itself that the node has. The node begins again with an empty
// index. A node that does not reply in time gets no further events until it replies.
//
//	feed.go   the leader: changes of the index, and copies that are being filled
//	node.go   the leader: events that another node matches
//	copy.go   the node: the copy of the index
//	frame.go  frames, and the encoding of changes, events and hits
package replica
