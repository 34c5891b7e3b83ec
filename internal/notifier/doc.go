// Package notifier reports outcomes of deliveries and changes of subscriptions and suppressions to
// services, as events of the topics fanfare.* that the services have declared. The server starts
// one Notifier. It reads the outcomes and changes that the recorder and the registry stored, and
// posts events to ingest.
//
// An event has common fields, which conditions can test, and a list of up to 200 deliveries,
// subscriptions or addresses. A broadcast to a million people produces several thousand events;
// nothing is omitted.
//
// Pending work is stored together with the outcome that it reports. The notifier plans it, posts
// the events and deletes the plan. After a crash between two of these steps it posts the plan
// again. The same outcomes in the same order produce events with the same ids, so that ingest
// recognizes repeats.
package notifier
