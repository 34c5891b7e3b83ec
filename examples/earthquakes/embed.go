// Package earthquakes embeds the files of the example, so that the binary can run it without
// the repository.
package earthquakes

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json earthquakes.ndjson *.liquid
var files embed.FS

// Files returns fanfare.yaml, the files that it refers to, and the events of the week in
// earthquakes.ndjson.
func Files() fs.FS { return files }
