package file

import (
	"os"
	"path/filepath"
	"strings"
)

// TempNames are the parts of the names of temporary files that distinguish one run of a
// channel from its other runs, and from other writers of the same folder. Both consist of
// letters and digits.
type TempNames struct {
	Owner string // a channel of a server; equal in all runs
	Run   string // different in each run
}

const tempPrefix = ".part-"

// prefix is the beginning of the names of temporary files.
func (m TempNames) prefix() string { return tempPrefix + m.Owner + "-" + m.Run + "-" }

// isLeftover reports whether a file is from another run of the same owner. An owner has only
// one run at a time, so that file is no longer being written.
func (m TempNames) isLeftover(name string) bool {
	return m.Owner != "" && strings.HasPrefix(name, tempPrefix+m.Owner+"-") && !strings.HasPrefix(name, m.prefix())
}

// removeLeftovers removes the files of earlier runs from a folder. It ignores errors because
// such files do no harm.
func (m TempNames) removeLeftovers(path string) {
	folder, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = folder.Close() }()
	var left []string
	for {
		names, err := folder.Readdirnames(1000) // the folder may have millions
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
