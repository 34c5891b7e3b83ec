package wire

import (
	"errors"

	"fanfare.dev/fanfare"
)

// A Member is one error: a *fanfare.Error on the wire.
type Member struct {
	Code    fanfare.Code `json:"code" doc:"code of the error; /errors lists all codes"`
	Detail  string       `json:"detail" doc:"description of the error"`
	Pointer string       `json:"pointer,omitempty" doc:"position: a JSON pointer (RFC 6901) into the input"`
	Line    int          `json:"line,omitempty" doc:"position: line of the input or of the template, from 1"`
	Column  int          `json:"column,omitempty" doc:"position: column of that line, from 1"`
	Hint    string       `json:"hint,omitempty" doc:"remedy"`
	Errors  []Member     `json:"errors,omitempty" doc:"other errors in the input"`
}

// A Problem is the body of every response with a status of 400 or higher (RFC 9457). Its
// Type links to the code on the page /errors of the server: a reference with an absolute
// path, as section 3.1.1 recommends for relative references.
type Problem struct {
	Type      string `json:"type" format:"uri-reference" doc:"link to the meaning and the remedy: /errors#code on this server"`
	Title     string `json:"title" doc:"text of the HTTP status"`
	Status    int    `json:"status" doc:"HTTP status"`
	RequestID string `json:"request_id,omitempty" doc:"request id; the server log has more details under this id"`
	Member
	Phase string `json:"phase,omitempty" doc:"while the server starts: current step"`
	Done  int64  `json:"done,omitempty" doc:"while the server starts: number of processed records in this phase; only for requests from the server's own machine"`
	Total int64  `json:"total,omitempty" doc:"while the server starts: number of records in this phase, if known; only for requests from the server's own machine"`
}

// MemberOf returns the public form of err. For an error that is not a *fanfare.Error, this
// contains only that an error occurred.
func MemberOf(err error) Member {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return Member{Code: fanfare.Internal, Detail: "an internal error occurred", Hint: "find the details in the server log under the request id"}
	}
	m := Member{Code: e.Code, Detail: e.Message, Pointer: e.Pointer, Line: e.Line, Column: e.Column, Hint: e.Hint}
	for _, d := range e.Details {
		m.Errors = append(m.Errors, MemberOf(d))
	}
	return m
}

// Err is the inverse of MemberOf.
func (m Member) Err() *fanfare.Error {
	e := &fanfare.Error{Code: m.Code, Message: m.Detail, Pointer: m.Pointer, Line: m.Line, Column: m.Column, Hint: m.Hint}
	for _, d := range m.Errors {
		e.Details = append(e.Details, d.Err())
	}
	return e
}
