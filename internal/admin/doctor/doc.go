// Package doctor checks the environment of a server: configuration, data directory, database, DNS, relays and certificates. It reports what is
// wrong and how to fix it.
//
// It keeps no state. To measure a sync, it writes a small file in the data directory and removes it at once. It ends sessions with mail
// servers before the envelope. A check that cannot be made is reported as a finding, and the other checks go on.
//
// `fanfare doctor` calls it. Package probe connects to databases and relays for it.
package doctor
