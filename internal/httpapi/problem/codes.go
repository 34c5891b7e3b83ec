package problem

import (
	"net/http"

	"fanfare.dev/fanfare"
)

// A CodeRow describes one error code.
type CodeRow struct {
	Code    fanfare.Code
	Status  int    // HTTP
	Meaning string // what happened
	Action  string // what a client should do
}

// Codes returns the table of error codes. The page /errors and docs/reference/errors.md
// are generated from it.
func Codes() []CodeRow {
	return []CodeRow{
		{fanfare.Invalid, http.StatusUnprocessableEntity,
			"A value in the request is invalid. `pointer`, `line` and `column` give its position; `errors` lists further invalid values.",
			"Correct the request. Sending the same request again gives the same response."},
		{fanfare.Unauthenticated, http.StatusUnauthorized,
			"The header `Authorization` has no key, or the key is unknown, expired, revoked or replaced.",
			"Send `Authorization: Bearer <key>`. Create a key with `fanfare key create`; the first key is in `admin.key` of the data directory."},
		{fanfare.Forbidden, http.StatusForbidden,
			"The key is valid but lacks the scope for this request, or the request specifies a service other than that of the key.",
			"Use a key with the scope stated in the message, or omit the service."},
		{fanfare.NotFound, http.StatusNotFound,
			"The object does not exist in the service of the key, or the path does not exist. Requests for objects of other services get the same response.",
			"Check the name and the service. Objects that were removed, or are older than the retention period, cannot be restored."},
		{fanfare.MethodNotAllowed, http.StatusMethodNotAllowed,
			"The path exists but does not support this method.",
			"Use one of the methods in the header `Allow`."},
		{fanfare.Conflict, http.StatusConflict,
			"The object is in a state that does not allow this, or another object still depends on it.",
			"The message says what prevents the request. Resolve that, then send the request again."},
		{fanfare.PreconditionFailed, http.StatusPreconditionFailed,
			"The `ETag` in `If-Match` is out of date: the object has changed since you read it. This request changed nothing.",
			"Read the object again, apply your change to it, and send it with the new `ETag`."},
		{fanfare.KeyReused, http.StatusUnprocessableEntity,
			"The same `Idempotency-Key` was used with another body within the last hour. This request sent nothing.",
			"Generate a new key for each message, and reuse it only to repeat the same request."},
		{fanfare.UpgradeRequired, http.StatusUpgradeRequired,
			"The path is a WebSocket endpoint, but the request is not a WebSocket handshake.",
			"Use one of the libraries for sessions, or a WebSocket client with the subprotocol that the message states."},
		{fanfare.TooLarge, http.StatusRequestEntityTooLarge,
			"The body, one of its lines or a list in it exceeds a limit. The message states the limit.",
			"Send less at a time. Send many events or subscriptions as NDJSON, which is streamed."},
		{fanfare.RateLimited, http.StatusTooManyRequests,
			"The key exceeds its rate limit or its maximum number of concurrent requests, or this address has sent too many invalid keys.",
			"Wait for the number of seconds in `Retry-After`. If a rate limit is set, the headers `RateLimit` and `RateLimit-Policy` of each response show the remaining quota."},
		{fanfare.DiskFull, http.StatusInsufficientStorage,
			"The server has less free disk space than `disk_floor`, or the disk of its database is full. It accepts no new events and continues to deliver the accepted ones.",
			"Send the request again later (`Retry-After`). The operator must free disk space or lower `disk_floor`."},
		{fanfare.Unavailable, http.StatusServiceUnavailable,
			"The server is starting, stopping or overloaded, or cannot reach its database. It stored nothing from the request, unless `detail` says that it may have. If the body is NDJSON, it stored the lines before the reported one.",
			"Send the request again after the number of seconds in `Retry-After`."},
		{fanfare.Internal, http.StatusInternalServerError,
			"The server failed because of an internal error. The request is not the cause.",
			"Report the `request_id` to the operator, who can find the details in the server log."},
	}
}

// StatusOf returns the HTTP status of a code.
func StatusOf(c fanfare.Code) int {
	for _, row := range Codes() {
		if row.Code == c {
			return row.Status
		}
	}
	return http.StatusInternalServerError
}

// TypeOf returns the type of a problem with this code: a reference with an absolute
// path, which a client resolves against the URL of the server (RFC 9457,
// sections 3.1.1 and 4). It links to the page /errors.
func TypeOf(c fanfare.Code) string { return "/errors#" + string(c) }
