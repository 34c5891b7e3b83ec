// Package sessions has the experiments with sessions: throughput (T1), latency (T2), efficiency (T3), an hour at a steady rate
// (T4), and responses that are read again (T5). They go through the public libraries over TCP: the server, the clients and each
// instance of the worker are processes of their own. The limit of T1 is raw NATS request/reply with a server, a requester and a
// responder in three processes.
//
//	experiments.go  T1, T2 and T3
//	endurance.go    T4
//	paced.go        its clients: one with a steady rate and one that reads slowly
//	memory.go       its results
//	reread.go       T5
//	worker.go       the process of an instance
//	client.go       the process of the clients
//	nats.go         the processes of raw NATS
package sessions
