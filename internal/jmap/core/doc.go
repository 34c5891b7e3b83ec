// Package core implements the part of JMAP that knows no data types (RFC 8620, section 3 and the standard methods of
// section 5): it reads requests, resolves result references and creation ids, calls methods, and writes responses and errors.
//
// State. A Server has a table of methods, which does not change after its start. A Call lives as long as its request; the ids
// of created records and the results of earlier calls are in it.
//
// Failure. A request that is wrong as a whole is a *RequestError. A call that fails becomes an "error" in the response, and the
// calls after it run. A method that panics ends the request; the HTTP server answers.
//
// The package internal/jmap/mail has the methods, and internal/jmap serves requests.
package core
