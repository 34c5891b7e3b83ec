// Package control contains the switches with which operators and services control the sending of messages: pause, resume, cancel, approve,
// rates, and parked work.
//
// Switches publishes one immutable snapshot of all switches. The connections of channels read it before each message without a lock. A switch
// is stored before its call returns. The work that follows from a switch, such as the release of held batches, is repeated until it succeeds,
// including after a restart.
//
// The API calls it; package dispatch and the gate of each channel read it.
package control
