package docexamples

import (
	"io/fs"
	"strings"
)

// A skipped is a folder without what is not for the page itself.
type skipped struct{ fs.FS }

func (s skipped) ReadDir(name string) (list []fs.DirEntry, err error) {
	all, err := fs.ReadDir(s.FS, name)
	for _, one := range all {
		if one.Name() != "document.yaml" && one.Name() != "setup.sh" && one.Name() != "before" && !strings.HasPrefix(one.Name(), ".") {
			list = append(list, one)
		}
	}
	return list, err
}
