// Package deep verifies stored data for `fanfare doctor --deep`: the checksums of events, manifests, files and stored messages, the messages of
// the bus, the structure of the databases, and backups. It reports each damaged value with what it affects and how to restore it.
//
// It keeps no state and changes nothing. A server may run, except that its embedded bus can only be verified when it is stopped: the package
// holds the lock of the data directory during that. A check that cannot be performed is reported as a finding, and the other checks continue.
//
// `fanfare doctor --deep` calls it after the checks of package doctor.
package deep
