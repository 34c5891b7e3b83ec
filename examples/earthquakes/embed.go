// Package earthquakes is the example as files, so that a lone binary can show it.
package earthquakes

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json earthquakes.ndjson *.liquid
var files embed.FS

// Files are fanfare.yaml, what it names, and the events of the week in
// earthquakes.ndjson.
func Files() fs.FS { return files }
