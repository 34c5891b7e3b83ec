// Package fanfare holds the words of the domain: events, subscriptions,
// manifests, deliveries, and the small contracts between the stages that carry
// them. It imports only the standard library and does nothing by itself.
//
// An event flows through six stages, each a package under internal/:
//
//	collect --EVENTS--> match + generate --BATCHES--> load, format, deliver, record
//
// The two arrows with a name are the durable hops. Nothing else is kept between
// stages, so a crash anywhere resumes from one of them.
package fanfare
