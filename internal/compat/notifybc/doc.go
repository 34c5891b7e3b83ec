// Package notifybc serves the REST API of NotifyBC, so that its clients work without a change. It translates requests into
// the resources of one service:
//
//	service name           a topic with unique: subscription, created when it is first named
//	subscription           a subscription with the same id; its other members are in the data
//	broadcast              an event of the topic that brings its content along
//	unicast                a message to one address
//	notification           a record of its own, which refers to the event
//
// Files: api.go has the routes and the answers; subscription.go converts subscriptions, create.go, change.go and links.go
// are their routes; notification.go converts notifications, dispatch.go sends them, and inapp.go reads those of the
// application; topics.go has the names of topics, and message.go writes messages to one person.
//
// State. Nothing is kept in memory but the notifications that are not finished, which Open reads from the database. Each
// of them is stored before it is posted, and the id of its event follows from its own id, so that a notification that was
// stored but not posted before a kill is posted after the next start, once.
//
// Failure. Errors have the status and the body that NotifyBC answers with.
package notifybc
