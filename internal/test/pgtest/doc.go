// Package pgtest runs a real PostgreSQL for tests under any account, including root, without a system package. It
// downloads the programs once for each version into the user's cache directory. Root uses /var/cache and runs PostgreSQL
// as nobody, because PostgreSQL refuses to run as root.
//
// A server has a directory below the system's temporary directory for its data and its log. It listens on a port of
// 127.0.0.1 that stays reserved while the directory exists, across kills and restarts. A separate janitor process stops
// the server and removes the directory after the process that started it has ended for any reason.
//
// Failing tests show the end of PostgreSQL's log. No test is skipped: if no server can be started, set
// FANFARE_TEST_POSTGRES to the URL of a running server.
//
// Texts are sorted by language rules (ICU, en), as in most databases of users, so that tests find queries that need byte
// order and do not request it. Tests connect as an account that owns its databases and is not a superuser.
package pgtest
