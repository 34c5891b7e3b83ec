package postgres

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/store"
)

// A trouble classifies an error of the server or the connection.
type trouble int

const (
	refused  trouble = iota // a retry is useless
	conflict                // another transaction conflicted
	stale                   // this connection is unusable, another may work
	away                    // the database cannot be reached
	crowded                 // it accepts no more connections
	standby                 // it does not accept writes, temporarily or permanently
	full                    // its disk is full
	slow                    // the statement timeout was exceeded
	unknown                 // a table of the day does not exist
	stranger                // the user is not allowed to log in
	nameless                // the login needs a password that is not configured
	missing                 // the database does not exist
	denied                  // the user lacks a permission
)

// troubles maps the error codes (PostgreSQL, appendix A) that need special treatment.
var troubles = map[string]trouble{
	"40001": conflict, // serialization_failure
	"40P01": conflict, // deadlock_detected
	"55P03": conflict, // lock_not_available: the lock timeout

	"57P01": away, // admin_shutdown
	"57P02": away, // crash_shutdown
	"57P03": away, // cannot_connect_now: the server is starting or stopping
	"57P05": away, // idle_session_timeout
	"25P03": away, // idle_in_transaction_session_timeout
	"08000": away, // connection_exception
	"08003": away, // connection_does_not_exist
	"08006": away, // connection_failure
	"08P01": away, // protocol_violation: a pooler lost its server

	"26000": stale, // invalid_sql_statement_name: the statement was deallocated
	"42P05": stale, // duplicate_prepared_statement
	"0A000": stale, // feature_not_supported: a cached plan whose table was changed

	"25006": standby, // read_only_sql_transaction
	"53300": crowded, // too_many_connections
	"53100": full,    // disk_full
	"57014": slow,    // query_canceled

	"42P01": unknown, // undefined_table
	"23503": unknown, // foreign_key_violation: the day does not exist
	"23514": unknown, // check_violation: no partition for the row

	"28000": stranger, // invalid_authorization_specification
	"28P01": stranger, // invalid_password
	"3D000": missing,  // invalid_catalog_name: no such database
	"42501": denied,   // insufficient_privilege
}

func troubleOf(err error) trouble {
	if told, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch {
		case told.Code == "0A000" && told.Routine != "RevalidateCachedQuery":
			return refused
		case isFence(err):
			return conflict // a failover lost the token; it was restored
		}
		return troubles[told.Code]
	}
	return away // the server sent no error
}

// isTaken reports whether the key of a new row existed already.
func isTaken(err error) bool {
	told, ok := errors.AsType[*pgconn.PgError](err)
	return ok && told.Code == "23505" // unique_violation
}

// again reports whether a retry may succeed.
func (t trouble) again() bool {
	switch t {
	case conflict, stale, away, crowded, standby:
		return true
	default:
		return false
	}
}

// gone reports whether the connection is lost, or the server refuses connections.
func (t trouble) gone() bool {
	switch t {
	case away, crowded, stranger, nameless, missing:
		return true
	default:
		return false
	}
}

// words returns the message for users and the hint for operators.
var words = map[trouble]fanfare.Error{
	refused: {Code: fanfare.Unavailable, Message: "the database refused a statement; nothing was stored", Hint: "see the server log for the cause"},
	conflict: {Code: fanfare.Unavailable, Message: "other transactions locked the same rows for too long; nothing was stored",
		Hint: "try again; if the error persists, use pg_stat_activity to find the sessions that hold the locks"},
	stale: {Code: fanfare.Unavailable, Message: "the database lost the state of this session; a connection pooler may be in transaction mode",
		Hint: "connect to PostgreSQL directly, or set the pooler to session mode"},
	away: {Code: fanfare.Unavailable, Message: "the database cannot be reached",
		Hint: "check that PostgreSQL is running and can be reached from this machine, then try again"},
	crowded: {Code: fanfare.Unavailable, Message: "the database is not accepting any more connections",
		Hint: "raise max_connections in PostgreSQL, or lower db_connections"},
	standby: {Code: fanfare.Unavailable, Message: "the database is read-only: it is a standby, a failover is in progress, or it was configured as read-only",
		Hint: "use the URL of the primary, or a URL that lists all hosts with target_session_attrs=read-write; run fanfare doctor to check default_transaction_read_only"},
	full: {Code: fanfare.DiskFull, Message: "the database disk is full; nothing was stored", Hint: "free up some space on that disk and try again"},
	slow: {Code: fanfare.Unavailable, Message: "the database took too long; nothing was stored",
		Hint: "try again; if the error persists, check the load on the PostgreSQL server, or raise db_statement_timeout"},
	stranger: {Code: fanfare.Unavailable, Message: "the database rejected the login",
		Hint: "check the user in the URL and the password, and check that pg_hba.conf allows the user to connect from this host"},
	nameless: {Code: fanfare.Unavailable, Message: "the database requires a password, and none was given",
		Hint: "write the password into a file and set db_password_file to its path, or allow the user to connect without a password in pg_hba.conf"},
	missing: {Code: fanfare.Unavailable, Message: "the database does not exist",
		Hint: "create it (CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0), or use the URL of another database"},
	denied: {Code: fanfare.Unavailable, Message: "the user in the URL lacks permissions that the server needs",
		Hint: "ask an administrator to run CREATE SCHEMA fanfare AUTHORIZATION with the user in the URL, or connect as the owner of the existing schema"},
}

// A failure is an error of the database that may reach a user: the message for them, and the cause for the log. The cause
// contains at most the host, user and database.
type failure struct {
	told  *fanfare.Error
	cause error
	away  bool // store.ErrAway is in the chain
}

func (f *failure) Error() string { return f.told.Message + ": " + oneLine(f.cause) }

func (f *failure) Unwrap() []error {
	if f.away {
		return []error{f.told, store.ErrAway, f.cause}
	}
	return []error{f.told, f.cause}
}

// OneLine returns the text of a database error in one line, for logs and the status. It contains no password.
func OneLine(err error) string { return oneLine(err) }

// oneLine returns the text of an error in one line. pgconn writes a line for each address that it has tried, and may try
// an address twice. If it continued without TLS after a refusal, the refusal was not the cause and is left out.
func oneLine(err error) string {
	var parts []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	others := slices.DeleteFunc(slices.Clone(parts), func(line string) bool { return strings.HasSuffix(line, refusedTLS) })
	if len(others) > 1 { // the first line names the user and database for all of them
		parts = others
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), ":; ", ": ")
}

func newFailure(t trouble, cause error) error {
	told, ok := words[t]
	if !ok {
		told = words[refused]
	}
	if hint := mendTLS(cause); t == away && hint != "" {
		told.Hint = hint
	}
	return &failure{&told, cause, t.again()}
}

// mendTLS returns a hint if the only cause is the TLS mode in the URL, else "".
func mendTLS(cause error) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](cause) // for verify-ca, pgconn verifies the chain itself
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](cause); untrusted || unknown {
		return "in the URL, set sslrootcert to the certificate of the CA that signed it, and use the host name in the certificate"
	}
	if strings.HasSuffix(oneLine(cause), refusedTLS) {
		return "enable TLS in PostgreSQL (ssl = on in postgresql.conf), or add sslmode=disable to the URL if the network is trusted"
	}
	return ""
}

// refusedTLS is pgconn's message for a server that does not support TLS.
const refusedTLS = "server refused TLS connection"

// An attemptError is an unchanged error of the server or the connection. Errors of the caller's functions are not wrapped
// in it.
type attemptError struct{ cause error }

func (e *attemptError) Error() string { return e.cause.Error() }
func (e *attemptError) Unwrap() error { return e.cause }

// errClosed is returned after the database was closed.
var errClosed = &fanfare.Error{Code: fanfare.Unavailable, Message: "the database is closed", Hint: "the server is stopping"}

func unknownDay(of fanfare.Day) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("there is no data for the day %s", of), Hint: "the day may be older than the retention period"}
}
