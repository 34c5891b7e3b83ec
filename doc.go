// Package fanfare defines the domain types: events, subscriptions, manifests, deliveries, and the
// values that the stages exchange. It imports only the standard library and starts nothing.
//
// An event passes through the stages in internal/pipeline:
//
//	ingest --EVENTS--> match, plan --BATCHES--> dispatch, deliver, record
//
// EVENTS and BATCHES are durable streams, from which the stages resume after a crash.
package fanfare
