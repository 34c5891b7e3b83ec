// Package people has the types of subscribers and subscriptions: what programs put (SubscriberPut,
// SubscriptionPut), what they are shown (Subscriber, Subscription), what delivery reads
// (SubscriberRow, SubscriptionRow), and consent. It decodes and checks these values as far as that
// needs no database. The registry, the HTTP API and the recipients' pages use it. It keeps no state.
package people
