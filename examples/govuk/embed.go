// Package govuk is the example as files, so that a lone binary can show it.
package govuk

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json content-changes.ndjson *.liquid
var files embed.FS

// Files are fanfare.yaml, what it names, and the published documents in
// content-changes.ndjson.
func Files() fs.FS { return files }
