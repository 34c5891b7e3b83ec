// Package catalog has the types of the configuration: services, topics, templates, channels and the
// scopes of keys, with their units, limits and defaults. A Snapshot is the whole configuration at
// one moment; it reads itself from the records of the control store and never changes afterwards.
// Configuration is its read-only view for all other packages.
//
// Package document parses the documents that people apply, and the registry compares a document
// with the snapshot and makes the next one.
package catalog
