// Package people has the types of subscribers and subscriptions: those that clients send (SubscriberPut,
// SubscriptionPut) and receive (Subscriber, Subscription), those that delivery reads
// (SubscriberRow, SubscriptionRow), and consents. It decodes these values, and makes the checks that
// need no database. The registry, the HTTP API and the recipient pages use it. It keeps no state.
package people
