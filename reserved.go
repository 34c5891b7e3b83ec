package fanfare

import "strings"

// Topics of events that Fanfare publishes about the deliveries and subscribers of a service. A
// service declares the topics that it needs and subscribes to them like to any other topic.
const (
	TopicDeliveries = "fanfare.deliveries" // accepted by the next hop, delivered, or deferred
	TopicFailures   = "fanfare.failures"   // bounced, refused, expired, cancelled, suppressed, or reported as junk

	TopicSubscriptions = "fanfare.subscriptions" // ended by anybody; created, changed or restored by the subscriber
	TopicSuppressions  = "fanfare.suppressions"  // an address of a subscriber was suppressed, or its suppression was lifted
)

// ReservedPrefix begins the names of topics to which only Fanfare publishes.
const ReservedPrefix = "fanfare."

// ReservedTopics lists all reserved topics.
var ReservedTopics = []string{TopicDeliveries, TopicFailures, TopicSubscriptions, TopicSuppressions}

// ReservedTopic reports whether only Fanfare publishes events of the topic.
func ReservedTopic(name string) bool { return strings.HasPrefix(name, ReservedPrefix) }

// ToldAs returns the topic that reports the outcome to the service, and the kind of the outcome.
func (e *Entry) ToldAs() (topic, kind string) {
	switch {
	case e.Complaint:
		return TopicFailures, "complained"
	case e.Returned && e.State == Failed:
		return TopicFailures, "bounced"
	case e.State == Accepted, e.State == Delivered, e.State == Deferred:
		return TopicDeliveries, e.State.String()
	default:
		return TopicFailures, e.State.String()
	}
}
