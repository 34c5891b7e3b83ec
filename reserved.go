package fanfare

import "strings"

// Topics whose events Fanfare publishes itself, about what it did for a service and what
// its people did, in that service. A service declares those that it wants to hear of, and subscribes
// to them like to any other.
const (
	TopicDeliveries = "fanfare.deliveries" // taken by the next hop, arrived, or put off by it
	TopicFailures   = "fanfare.failures"   // bounced, refused, expired, cancelled, suppressed, called junk

	TopicSubscriptions = "fanfare.subscriptions" // ended by anybody; made, changed or taken back by the person
	TopicSuppressions  = "fanfare.suppressions"  // a subscriber's address was suppressed, or is no more
)

// ReservedPrefix begins the names of topics that nobody else publishes to.
const ReservedPrefix = "fanfare."

// ReservedTopics lists those that there are.
var ReservedTopics = []string{TopicDeliveries, TopicFailures, TopicSubscriptions, TopicSuppressions}

// ReservedTopic reports whether nobody but Fanfare publishes events of a topic.
func ReservedTopic(name string) bool { return strings.HasPrefix(name, ReservedPrefix) }

// ToldAs returns the topic in which a service is told of an outcome, and in a word
// what it was.
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
