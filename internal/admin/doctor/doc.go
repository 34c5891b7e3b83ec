// Package doctor checks the environment of a server: configuration, data directory, database, DNS, relays and
// certificates. It says what is wrong and how to fix it.
//
// State. None. The only file that it writes is a small one in the data directory, to measure a sync; it removes the file
// at once. In sessions with mail servers it stops before the envelope.
//
// Failure. A check that cannot be made is a finding, not an error, and the other checks go on.
//
// `fanfare doctor` calls it. Package probe connects to databases and relays for it.
package doctor
