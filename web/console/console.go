// Package console contains the built web console. The folder dist has only a page that says how to build it, unless web/console/build has run.
package console

import "embed"

// Files has the files of the console below dist.
//
//go:embed dist
var Files embed.FS
