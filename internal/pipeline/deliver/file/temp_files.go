package file

import (
	"os"
	"path/filepath"
	"strings"
)

// A Mark stands in the names of temporary files, and tells those that one run of a
// channel writes from those of its other runs, and of others that write into the same
// folder. Both parts are messages and digits.
type TempNames struct {
	Owner string // a channel of a server, the same in each of its runs
	Run   string // another in each
}

const tempPrefix = ".part-"

// prefix is what the names of temporary files begin with.
func (m TempNames) prefix() string { return tempPrefix + m.Owner + "-" + m.Run + "-" }

// isLeftover reports whether a file is of another run of the same owner. Owners run once
// at a time, so that nobody writes it any more.
func (m TempNames) isLeftover(name string) bool {
	return m.Owner != "" && strings.HasPrefix(name, tempPrefix+m.Owner+"-") && !strings.HasPrefix(name, m.prefix())
}

// removeLeftovers removes what earlier runs left in a folder. What cannot be removed is no
// reason to send nothing: it is in nobody's way.
func (m TempNames) removeLeftovers(path string) {
	folder, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = folder.Close() }()
	var left []string
	for {
		names, err := folder.Readdirnames(1000) // of millions
		for _, name := range names {
			if m.isLeftover(name) {
				left = append(left, name)
			}
		}
		if err != nil {
			break
		}
	}
	for _, name := range left {
		_ = os.Remove(filepath.Join(path, name))
	}
}
