package feedback

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/durablefile"
)

const (
	// PostmasterDir is the folder in the data directory for messages to postmaster and abuse.
	PostmasterDir = "postmaster"
	// maxMails is the number of newest messages that are retained.
	maxMails = 200
)

// A MailStore stores messages to people, each as a file.
type MailStore struct {
	Dir   string
	Clock clock.Clock

	mu    sync.Mutex
	count int
}

// Keep returns when the message is on disk.
func (m *MailStore) Keep(message []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := durablefile.MakeDir(m.Dir, 0o700); err != nil {
		return err
	}
	all, err := m.list()
	if err != nil {
		return err
	}
	for len(all) >= maxMails {
		if err := os.Remove(filepath.Join(m.Dir, all[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		all = all[1:]
	}
	m.count++
	name := fmt.Sprintf("%s-%03d.eml", m.Clock.Now().Format("20060102T150405.000000000"), m.count%1000)
	return durablefile.Write(filepath.Join(m.Dir, name), message)
}

// list returns the names of the files, the oldest first.
func (m *MailStore) list() (all []string, err error) {
	entries, err := os.ReadDir(m.Dir) // sorted by name
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ".eml") {
			all = append(all, entry.Name())
		}
	}
	return all, err
}
