// Package pgtest runs a real PostgreSQL for tests: of any account, root too, with
// no package of the system. Its programs are fetched once for each version, and
// kept in the user's cache directory (root's are in /var/cache, since another
// account must reach them: PostgreSQL refuses to run as root, so root runs it as
// nobody).
//
// State. A server has a directory in the system's temporary one, with its data
// and its log, and listens on a port of 127.0.0.1 that is its own for as long as
// the directory lives, over kills and restarts. A janitor, a process of its own,
// ends the server and removes the directory when the process that started it is
// gone, however it went.
//
// Failure. Tests fail with the end of PostgreSQL's log. Nothing is skipped: where
// no server can be started, FANFARE_TEST_POSTGRES names one that runs.
//
// The order of texts is that of a language (ICU, en), as in most databases of
// users, so that a query that needs the order of bytes and does not ask for it
// is found. Tests connect as an account that owns its databases and is no
// superuser.
package pgtest
