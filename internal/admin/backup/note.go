package backup

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

const (
	// noteFile records which backup a directory was restored from. uncertainFile lists the broadcasts that were open then, one per line.
	noteFile      = "restored.json"
	uncertainFile = "restored.ndjson"

	noteNew  = "new"  // no server has started since the restore
	noteDone = "done" // a server has started since the restore
)

// A Note records which backup a directory was restored from.
type Note struct {
	State    string    `json:"state"`
	Fanfare  string    `json:"fanfare"`  // version that wrote the backup
	Backup   time.Time `json:"backup"`   // start of the backup
	Restored time.Time `json:"restored"` // when it was restored

	LastEvent fanfare.EventSeq `json:"last_event"` // highest of the unmatched events

	// Broadcasts that were open at the backup. The numbers are known after the first start.
	Broadcasts int   `json:"broadcasts"` // open broadcasts
	Deliveries int64 `json:"deliveries"` // their unsettled deliveries
	Unmatched  int   `json:"unmatched"`  // unmatched events
}

// Uncertain is a broadcast that was open at the backup. Its unsettled deliveries may have been sent since then.
type Uncertain struct {
	Event     string `json:"event"`
	Service   string `json:"service"`
	Topic     string `json:"topic"`
	Unmatched bool   `json:"unmatched,omitempty"` // its recipients were not known yet
	Messages  int64  `json:"messages"`            // all deliveries
	Unsettled int64  `json:"unsettled"`           // open deliveries
	Deferred  int64  `json:"deferred"`            // unsettled deliveries between two attempts
}

// Add counts an uncertain broadcast.
func (n *Note) Add(u *Uncertain) {
	if u.Unmatched {
		n.Unmatched++
		return
	}
	n.Broadcasts++
	n.Deliveries += u.Unsettled
}

// ReadNote returns the note of a directory, or nil if it was not restored.
func ReadNote(dir string) (*Note, error) {
	text, err := os.ReadFile(filepath.Join(dir, noteFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var n Note
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", noteFile, err)
	}
	return &n, nil
}

// New reports whether no server has started since the restore.
func (n *Note) New() bool { return n != nil && n.State == noteNew }

// Finish marks the restore as complete, writes the list of uncertain broadcasts, and removes files that are no longer needed. It can be
// repeated.
func (n *Note) Finish(dir string, list func(add func(*Uncertain) error) error) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	out, err := root.OpenFile(uncertainFile, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, partMode)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(out)
	done := *n
	done.State, done.Broadcasts, done.Deliveries, done.Unmatched = noteDone, 0, 0, 0
	err = list(func(u *Uncertain) error {
		done.Add(u)
		return json.NewEncoder(lines).Encode(u)
	})
	if err := errors.Join(err, lines.Flush(), out.Sync(), out.Close()); err != nil {
		return err
	}
	if err := writeNote(root, &done); err != nil {
		return err
	}
	*n = done
	return errors.Join(durablefile.SyncDir(dir), root.RemoveAll(eventsDir))
}

// writeNote replaces the whole note.
func writeNote(root *os.Root, n *Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := root.RemoveAll(noteFile + partial); err != nil { // left by a killed start
		return err
	}
	if err := writePart(root, noteFile+partial, bytes.NewReader(text)); err != nil {
		return err
	}
	return root.Rename(noteFile+partial, noteFile)
}

// ReadUncertain reads at most limit uncertain broadcasts, starting at an offset, and returns the next offset, or 0 at the end.
func ReadUncertain(dir string, offset int64, limit int) (list []Uncertain, next int64, err error) {
	in, err := os.Open(filepath.Join(dir, uncertainFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	if _, err := in.Seek(offset, io.SeekStart); err != nil {
		return nil, 0, err
	}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return list, 0, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if len(list) == limit {
			return list, offset, nil
		}
		var u Uncertain
		if err := json.Unmarshal(line, &u); err != nil {
			return nil, 0, &fanfare.Error{Code: fanfare.Invalid, Message: "the cursor is not from this list", Hint: "start without a cursor"}
		}
		list = append(list, u)
		offset += int64(len(line))
	}
}

// ReadEvents visits the groups of unmatched events of a backup in their order.
func ReadEvents(dir string, visit func(group []byte) error) error {
	parts, err := os.ReadDir(filepath.Join(dir, eventsDir)) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, part := range parts {
		groups, err := os.ReadFile(filepath.Join(dir, eventsDir, part.Name()))
		if err != nil {
			return err
		}
		for len(groups) > 0 {
			size, n := binary.Uvarint(groups)
			if n <= 0 || size > uint64(len(groups)-n) {
				return fmt.Errorf("%s/%s is damaged", eventsDir, part.Name())
			}
			if err := visit(groups[n : n+int(size)]); err != nil {
				return err
			}
			groups = groups[n+int(size):]
		}
	}
	return nil
}
