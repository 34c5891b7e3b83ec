package httpapi

import (
	"net/http"

	"fanfare.dev/fanfare"
)

// A codeRow is what there is to know about one code.
type codeRow struct {
	Code    fanfare.Code
	Status  int    // HTTP
	Meaning string // what happened
	Action  string // what a client does about it
}

// codes is the one table of codes. The page /errors and docs/reference/errors.md are
// written from it.
func codes() []codeRow {
	return []codeRow{
		{fanfare.Invalid, http.StatusUnprocessableEntity,
			"The request was understood and something in it is wrong. `pointer`, `line` and `column` say where, `errors` lists every other place.",
			"Correct it. The same request again gives the same answer."},
		{fanfare.Unauthenticated, http.StatusUnauthorized,
			"There is no key in the header `Authorization`, or nobody knows it, or it has expired or was replaced.",
			"Send `Authorization: Bearer <key>`. Keys are made with `fanfare key create`; the first one is in `admin.key` of the data directory."},
		{fanfare.Forbidden, http.StatusForbidden,
			"The key is good, but it has not the scope for this, or the request names another service than the key's.",
			"Use a key with the scope that the message names, or leave the service out."},
		{fanfare.NotFound, http.StatusNotFound,
			"There is no such thing in the service of the key, or no such path. What belongs to another service is answered in the same way.",
			"Check the name and the service. What was removed, or is older than the retention, does not come back."},
		{fanfare.MethodNotAllowed, http.StatusMethodNotAllowed,
			"The path exists, but not with this method.",
			"Use one of the methods in the header `Allow`."},
		{fanfare.Conflict, http.StatusConflict,
			"The thing is in a state that does not allow this, or something else would be left without what it stands on.",
			"Read the message: it names what is in the way. Change that first."},
		{fanfare.PreconditionFailed, http.StatusPreconditionFailed,
			"`If-Match` does not fit: somebody has changed the thing since you read it. Nothing was changed now.",
			"Read it again, make your change to what is there now, and send it with the new `ETag`."},
		{fanfare.KeyReused, http.StatusUnprocessableEntity,
			"The `Idempotency-Key` came with another body within the last hour. Nothing was sent now.",
			"Make a new key for each new message, and use it again only to repeat the same one."},
		{fanfare.TooLarge, http.StatusRequestEntityTooLarge,
			"The body, a line of it or a list in it is over a limit, which the message states.",
			"Send less at a time. Many events or subscriptions go as NDJSON, which is streamed."},
		{fanfare.RateLimited, http.StatusTooManyRequests,
			"This key sends more at a time than it may, or wrong keys have come from this address too often.",
			"Wait as many seconds as `Retry-After` says. `RateLimit` and `RateLimit-Policy` in every answer show what is left."},
		{fanfare.DiskFull, http.StatusInsufficientStorage,
			"The server has less free disk than its floor, or the disk of its database is full. Nothing new is taken in; what was accepted goes on to be delivered.",
			"Send it again later (`Retry-After`). The operator makes room, or lowers `disk_floor`."},
		{fanfare.Unavailable, http.StatusServiceUnavailable,
			"Not now: the server is starting, stopping or has too much to do at once, or its database is away. Nothing of the request was kept, unless the detail says that it may have been; of NDJSON what stands before the line that is named.",
			"Send it again after as many seconds as `Retry-After` says."},
		{fanfare.Internal, http.StatusInternalServerError,
			"Something went wrong inside the server. It is not your fault.",
			"Give the operator the `request_id`: the server's log has more under it."},
	}
}

// statusOf returns the HTTP status of a code.
func statusOf(c fanfare.Code) int {
	for _, row := range codes() {
		if row.Code == c {
			return row.Status
		}
	}
	return http.StatusInternalServerError
}

// typeOf returns the type of a problem with this code: a reference with a full
// path, which a client resolves against the server that it asked (RFC 9457,
// sections 3.1.1 and 4). It leads to errorsPage.
func typeOf(c fanfare.Code) string { return "/errors#" + string(c) }
