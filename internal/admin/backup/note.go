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
)

const (
	// noteFile is what a restored directory knows of where it comes from, and
	// uncertainFile what was open then, a line for each broadcast.
	noteFile      = "restored.json"
	uncertainFile = "restored.ndjson"

	noteNew  = "new"  // the server has not started here yet
	noteDone = "done" // it has taken up what the backup had
)

// A Note is what a directory that was restored knows of it.
type Note struct {
	State    string    `json:"state"`
	Fanfare  string    `json:"fanfare"`  // version that wrote the backup
	Backup   time.Time `json:"backup"`   // when it was begun
	Restored time.Time `json:"restored"` // when it was restored

	LastEvent fanfare.EventSeq `json:"last_event"` // the highest of the unmatched ones

	// The open work at the backup; known once the server has started.
	Broadcasts int   `json:"broadcasts"` // that were open
	Deliveries int64 `json:"deliveries"` // of them, not settled
	Unmatched  int   `json:"unmatched"`  // events that were not matched
}

// Uncertain is a broadcast that was open at the backup. Its unsettled deliveries may have
// been sent after the backup.
type Uncertain struct {
	Event     string `json:"event"`
	Service   string `json:"service"`
	Topic     string `json:"topic"`
	Unmatched bool   `json:"unmatched,omitempty"` // it was not known yet who is to get it
	Messages  int64  `json:"messages"`            // all deliveries
	Unsettled int64  `json:"unsettled"`           // those that were open
	Deferred  int64  `json:"deferred"`            // of these, between attempts
}

// Add counts one.
func (n *Note) Add(u *Uncertain) {
	if u.Unmatched {
		n.Unmatched++
		return
	}
	n.Broadcasts++
	n.Deliveries += u.Unsettled
}

// ReadNote returns the note of a directory, nil where none was restored there.
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

// New tells whether the server has still to take up what was restored.
func (n *Note) New() bool { return n != nil && n.State == noteNew }

// Finish notes that the server has taken up what the backup had, lists what was
// uncertain, and removes what is needed no more. It may be repeated.
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
	return errors.Join(syncDir(dir), root.RemoveAll(eventsDir))
}

// writeNote puts a note in its place as a whole.
func writeNote(root *os.Root, n *Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := root.RemoveAll(noteFile + partial); err != nil { // of a start that was killed
		return err
	}
	if err := writePart(root, noteFile+partial, bytes.NewReader(text)); err != nil {
		return err
	}
	return root.Rename(noteFile+partial, noteFile)
}

// ReadUncertain reads at most limit lines of what was uncertain from an offset
// on, and returns the offset of the next, 0 at the end.
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
			return nil, 0, &fanfare.Error{Code: fanfare.Invalid, Message: "the cursor is not one that this list has given", Hint: "begin the list anew"}
		}
		list = append(list, u)
		offset += int64(len(line))
	}
}

// ReadEvents visits the groups of events that a backup had and that were not
// matched, in their order.
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
