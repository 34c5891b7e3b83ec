// Package document parses the documents in YAML or JSON that describe the configuration of one
// service or of one of its members. It checks each field by itself and reports errors with line,
// column and JSON pointer. The command line and the HTTP API call it. It keeps no state.
package document
