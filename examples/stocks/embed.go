// Package stocks embeds the files of the example, so that the binary can run it without
// the repository.
package stocks

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json stocks.csv *.liquid
var files embed.FS

// Files returns fanfare.yaml, the files that it refers to, and the prices in stocks.csv.
func Files() fs.FS { return files }
