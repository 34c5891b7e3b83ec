// Package loadgen makes what the experiments send: people and their addresses,
// lines of subscriptions, configuration documents, and HTTP requests over kept
// connections.
//
// Everything is made from a number and a seed. Nothing has to be stored, and two
// runs with the same seed send the same bytes.
package loadgen
