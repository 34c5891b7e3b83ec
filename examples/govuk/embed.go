// Package govuk embeds the files of the example, so that the binary can run it without
// the repository.
package govuk

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json content-changes.ndjson *.liquid
var files embed.FS

// Files returns fanfare.yaml, the files that it refers to, and the published documents in
// content-changes.ndjson.
func Files() fs.FS { return files }
