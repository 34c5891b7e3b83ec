// Package resource has what the routes of administrators, access tokens, configurations and bounces of the NotifyBC API share: the form of
// a route and its answers, reading bodies, and collections of records.
//
// # State and failure
//
// A [Collection] holds nothing: each call reads or writes the records of one kind in the control database, and is durable when it returns.
// Handlers return a *roles.Refusal, whose status and body the API answers with; any other error is an internal one, and its text never
// reaches the client.
package resource
