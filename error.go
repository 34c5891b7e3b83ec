package fanfare

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Code classifies an error. The HTTP API maps each code to a status, and cmd/fanfare maps it to an
// exit code.
type Code string

// The codes. docs/reference/errors.md says what to do about each.
const (
	Invalid            Code = "invalid"                // the input is wrong; repeating the request does not help
	Unauthenticated    Code = "unauthenticated"        // the key is missing or unknown
	Forbidden          Code = "forbidden"              // the key does not permit this
	NotFound           Code = "not_found"              // the service has nothing of this name
	MethodNotAllowed   Code = "method_not_allowed"     // the path exists, but not with this method
	Conflict           Code = "conflict"               // the state of the object does not allow this
	PreconditionFailed Code = "precondition_failed"    // the object was changed since it was read
	KeyReused          Code = "idempotency_key_reused" // the Idempotency-Key was used before with another body
	UpgradeRequired    Code = "upgrade_required"       // the path is a WebSocket
	TooLarge           Code = "too_large"              // larger than a documented limit
	RateLimited        Code = "rate_limited"           // the key or the address has reached its rate limit
	DiskFull           Code = "disk_full"              // below the disk floor: events are refused, delivery continues
	Unavailable        Code = "unavailable"            // temporary: starting, stopping, overloaded, or the database is not available
	Internal           Code = "internal"               // an error of the server; the log has the details under the request id
)

// An Error is an error for users: it says what is wrong, where, and what to do. It never contains
// internal details.
type Error struct {
	Code    Code     // kind of failure
	Message string   // what is wrong, without a full stop
	File    string   // the file that was read, or ""
	Pointer string   // JSON pointer (RFC 6901) into the input, or ""
	Line    int      // line of a file or a template, from 1, or 0
	Column  int      // column of that line, from 1, or 0
	Hint    string   // what to do, or ""
	Details []*Error // further errors in the input, or nil

	RetryAfter time.Duration // when to try again, or 0 if unknown
}

// Error returns all fields in one line.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ": ")
	}
	if e.Pointer != "" {
		b.WriteString(e.Pointer + ": ")
	}
	if e.Line > 0 {
		b.WriteString("line " + strconv.Itoa(e.Line))
		if e.Column > 0 {
			b.WriteString(", column " + strconv.Itoa(e.Column))
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	for _, d := range e.Details {
		b.WriteString("; " + d.Error())
	}
	return b.String()
}

// CodeOf returns the code of err: Internal for an error that is not an *Error.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Internal
}

// Below returns err with the prefix at in front of its pointer, for an error of a member. It
// returns err unchanged if err is not an *Error or at is "".
func Below(at string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || at == "" {
		return err
	}
	moved := *e
	moved.Pointer = at + e.Pointer
	return &moved
}
