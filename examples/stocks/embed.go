// Package stocks is the example as files, so that a lone binary can show it.
package stocks

import (
	"embed"
	"io/fs"
)

//go:embed fanfare.yaml schema.json stocks.csv *.liquid
var files embed.FS

// Files are fanfare.yaml, what it names, and the prices in stocks.csv.
func Files() fs.FS { return files }
