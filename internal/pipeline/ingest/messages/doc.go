// Package messages accepts direct messages (POST /v1/messages): it checks and renders them for their recipients, appends
// them to EVENTS as events with an audience, and reports their state.
//
// State. None. Failure. A message is durable when Send returns; a repeated Idempotency-Key returns the first message.
// The API and the recipient pages call it.
package messages
