// Package jsonschema reads JSON Schemas to check and to try templates: it tells which
// fields an event cannot have, and makes samples that fit a schema. Whether data is valid
// is decided elsewhere, by a library. Packages liquid and render use it.
//
// It keeps no state. Where a schema does not decide, a field is taken to exist.
package jsonschema
