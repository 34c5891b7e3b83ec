// Package state has the configuration that is in force: the snapshot of services, topics, templates
// and channels, the keys, the pauses, the rates that operators set, the quotas and the audit log.
//
// A Catalog keeps all of this in memory, loaded from the control store at start. Reads take no lock
// or a short one. All changes run in the goroutine of the Writer, one at a time; a method returns
// when its change is durable and in force. A change that fails leaves memory and store as they were.
// The registry of subscribers embeds the Catalog and implements the Writer.
package state
