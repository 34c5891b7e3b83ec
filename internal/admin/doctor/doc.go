// Package doctor checks the environment of a server: configuration, data directory, database, DNS, relays and certificates. It reports
// problems and how to fix them.
//
// It keeps no state. To measure a sync, it writes a small file in the data directory and removes it immediately. It ends sessions with mail
// servers before the envelope. A check that cannot be performed is reported as a finding, and the other checks continue.
//
// `fanfare doctor` calls it. Package probe connects to databases and relays for it.
package doctor
