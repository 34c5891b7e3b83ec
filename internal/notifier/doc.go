// Package notifier tells services what became of their deliveries, and what their people did,
// by events of the topics fanfare.* that they have declared. The server starts one Notifier; it
// reads outcomes and news that the recorder and the registry stored, and posts events to
// ingest like any other sender.
//
// An event has a common part, which conditions can test, and a list of up to 200 deliveries,
// subscriptions or addresses. A broadcast to a million people makes some thousand events, and
// nothing is left out.
//
// State. The work that waits is stored together with the outcome that it reports. The notifier
// plans it, posts the events and deletes the plan. Manifests and events that it has read stay
// in memory, within limits.
//
// Failure. After a crash between two of these steps the plan is posted again. The same outcomes
// in the same order make events with the same ids, so that ingest recognises repeats.
package notifier
