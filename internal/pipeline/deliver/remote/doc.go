// Package remote lets the nodes of a cluster deliver for the node that leads. A driver runs on another node, with its
// connections to relays and receivers. The queue of these connections stays on the leader:
//
//	leader                                              delivering node
//	deliver.Sender --- Queue --> stream ==== link ====> queue --- Queue --> smtp.Driver ---> relay
//
// The leader therefore decides about each message as it does for its own connections: the gate, the limits and rates of
// channels and destinations, retries and the record need no agreement between nodes.
//
// A link is one connection between the leader and a node, with many streams. A stream is one call of driver.Driver.Serve.
// The node calls the methods of driver.Queue, one call at a time for each stream, and the leader replies. A message usually
// takes two calls: its release, and the report of its outcome, whose reply brings the next message.
//
// State. The Hub has the links and their streams; an Agent has the drivers of its link. Nothing is stored.
//
// Failure. A side that has received nothing for the silence limit ends the link, and so does a side whose connection
// breaks. The node then closes all connections of its drivers immediately, also during a message. The leader returns the
// messages whose body had not been released. It reports the others as lost only after a further silence limit, when the node has
// certainly closed its connections: until then, they count as in flight, and an unsubscribe waits for them. A node whose
// process was suspended while it waited for a release does not use this release.
//
//	frame.go   the kinds of frames, and the encoding of messages and outcomes
//	hub.go     the leader: links, and drivers that run on other nodes
//	stream.go  the leader: the queue of one connection
//	agent.go   the node: a link to the leader, and the drivers
//	queue.go   the node: the queue of one connection
package remote
