package fanfare

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// Code classifies an error for those who act on it. package api maps each code
// to an HTTP status, cmd/fanfare to an exit code; nobody else does.
type Code string

// The codes. docs/reference/errors.md says of each what to do about it.
const (
	Invalid            Code = "invalid"                // the input is wrong; repeating it is of no use
	Unauthenticated    Code = "unauthenticated"        // no key, or one that nobody knows
	Forbidden          Code = "forbidden"              // the key is good, but not for this
	NotFound           Code = "not_found"              // no such thing in this service
	MethodNotAllowed   Code = "method_not_allowed"     // the path is known, but not with this method
	Conflict           Code = "conflict"               // the thing is in a state that does not allow this
	PreconditionFailed Code = "precondition_failed"    // the thing was changed since it was read
	KeyReused          Code = "idempotency_key_reused" // the Idempotency-Key came with another body before
	TooLarge           Code = "too_large"              // over a documented limit
	RateLimited        Code = "rate_limited"           // more at a time than this key, or this address, may ask
	DiskFull           Code = "disk_full"              // below the disk floor: intake is closed, delivery goes on
	Unavailable        Code = "unavailable"            // not now: starting, stopping, overloaded, or the database is away
	Internal           Code = "internal"               // our fault; the log has more under the request id
)

// An Error is one that a user can meet. It says what was wrong, where, and what
// to do about it, and never what is inside.
type Error struct {
	Code    Code     // what kind of failure
	Message string   // what was wrong, a sentence without a full stop
	File    string   // where: the file that was read, or ""
	Pointer string   // where: a JSON pointer (RFC 6901) into the input, or ""
	Line    int      // where: line of a file or of a template, from 1, or 0
	Column  int      // where: column of that line, from 1, or 0
	Hint    string   // what to do, or ""
	Details []*Error // the other members of the input that are wrong, or nil

	RetryAfter time.Duration // when to try again, where that is known, or 0
}

// Error joins all that is known into one line.
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

// Below returns err with its pointer below another one, as for an error of a member. An error that
// is not an *Error is returned unchanged, and so is any error if at is "".
func Below(at string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || at == "" {
		return err
	}
	moved := *e
	moved.Pointer = at + e.Pointer
	return &moved
}
