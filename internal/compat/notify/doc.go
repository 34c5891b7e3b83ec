// Package notify answers clients of GOV.UK Notify: it offers version 2 of the REST API of that system, with its
// requests, answers, errors and statuses. It translates them to messages, templates and channels of a service that has
// the settings notify; it has no pipeline and no store of its own.
//
//	api.go       routes, limits of a request, and the common part of all answers
//	auth.go      keys and the services that they open
//	errors.go    errors in the shape of GOV.UK Notify
//	schema.go    checks of the members of a request
//	send.go      POST /v2/notifications/email and sms, and the refusal of letters
//	read.go      GET /v2/notifications/{id}, and the form of a notification
//	list.go      GET /v2/notifications
//	status.go    statuses
//	templates.go templates, versions and previews
//	limits.go    limits per minute and per day
//
// Package token checks signatures, notificationid converts ids, and files has the files that are sent by link.
//
// State. The buckets of the rate limit and the counters of the day are in memory; the counters are read from the store
// at the first request of a day. Everything else is in the catalog and the day store.
//
// Failure. Each refusal is an *apiError, and has the status, the name and the wording that clients know. Other errors are
// logged and answered with 500.
package notify
