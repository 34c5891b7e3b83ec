package sqlite

import (
	"errors"

	"zombiezen.com/go/sqlite"

	"fanfare.dev/fanfare"
)

// A failure is an error of SQLite that may reach a user: the message for them, and the cause for the log.
type failure struct {
	told  *fanfare.Error
	cause error
}

func (f *failure) Error() string   { return f.told.Message + ": " + f.cause.Error() }
func (f *failure) Unwrap() []error { return []error{f.told, f.cause} }

const (
	couldNotWrite = "the data directory could not be written; nothing was stored"
	couldNotRead  = "the server could not read the data directory"
)

// told turns errors that an operator can fix into a *fanfare.Error. It returns programming errors and other errors
// unchanged.
func told(err error, message string) error {
	if err == nil {
		return nil
	}
	if _, already := errors.AsType[*fanfare.Error](err); already {
		return err
	}
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull:
		return &failure{&fanfare.Error{Code: fanfare.DiskFull, Message: "the disk that contains the data directory is full; nothing was stored",
			Hint: "free some space and try again"}, err}
	case sqlite.ResultError, sqlite.ResultConstraint, sqlite.ResultMismatch, sqlite.ResultMisuse, sqlite.ResultRange, sqlite.ResultTooBig:
		return err // SQLite reports ResultError for other errors, too
	}
	return &failure{&fanfare.Error{Code: fanfare.Unavailable, Message: message, Hint: "see the server log for the cause"}, err}
}
