package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"fanfare.dev/fanfare/internal/pipeline/deliver/file"
)

// fileMarks make the marks by which channels of the driver file tell their own
// temporary files from those of others.
type fileMarks struct{ server, run string }

// newFileMarks are those of one start. A data directory is of one server at a time; a
// copy of it elsewhere is another's, although it has the same key.
func newFileMarks(dir string, key []byte, started time.Time) fileMarks {
	host, _ := os.Hostname() // without one the rest tells them apart
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "owner of files\x00%s\x00%s\x00%x", host, dir, key))
	return fileMarks{hex.EncodeToString(sum[:6]), strconv.FormatInt(started.UnixNano(), 36)}
}

func (m fileMarks) of(channel uint16) file.Mark {
	return file.Mark{Owner: fmt.Sprintf("%sc%d", m.server, channel), Run: m.run}
}
