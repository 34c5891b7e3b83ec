// Package control holds the switches with which operators and services stop, start and steer the sending of messages:
// pause, resume, cancel, approve, rates, and parked work.
//
// State. Switches publishes one immutable snapshot of all switches, which the connections of channels read before each
// message without a lock. The store and the registry have everything durable.
//
// Failure. A switch is durable before its call returns. The work that follows from it, such as the release of held
// batches, is repeated until it succeeds, also by the next start.
//
// The API calls it; package dispatch and the gate of each channel read it.
package control
