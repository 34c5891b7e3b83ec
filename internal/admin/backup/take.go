package backup

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
)

// A Snapshot is a file of the store at one point in time.
type Snapshot interface {
	Size() int64
	Copy(ctx context.Context, w io.Writer) error
	Close() error
}

// A Source is the data of a server.
type Source struct {
	Dir string // the data directory
	// Export creates files if the store is not in files. It is nil if the store's files are in Dir.
	Export *Export
	// Unmatched visits the groups of events that may not be matched yet. Each event has its sequence number. n is the
	// number of events, and highest their highest sequence number.
	Unmatched func(ctx context.Context, visit func(group []byte, events int, highest fanfare.EventSeq) error) error
	// Snapshot opens a file of the store at one moment.
	Snapshot func(path string) (Snapshot, error)
	Version  string // of the program
	Clock    clock.Clock
}

// An Export creates files from a store that is not in files.
type Export struct {
	Dir   string // target directory
	Bytes int64  // estimated size
	// The functions are called in this order, after the events were copied. Control is called last, so that its copy contains the erasures that
	// began in the meantime.
	Days, Sessions, Mailboxes, Control func(ctx context.Context) error
}

// store returns the directory of the files of the store.
func (s *Source) store() string {
	if s.Export != nil {
		return s.Export.Dir
	}
	return s.Dir
}

// notTaken is the key that a backup omits. A restored server creates a new one, so that a stolen backup does not allow a login.
const notTaken = "admin.key"

// eventsBytes is the maximum size of one part with events, which is built in memory.
const eventsBytes = 4 << 20

// Take writes a backup of a source to w, with at most bytesPerSecond, or as fast as possible if it is 0. After an error,
// the output must not be used.
func Take(ctx context.Context, w io.Writer, s *Source, bytesPerSecond int64) error {
	estimate, err := s.estimate()
	if err != nil {
		return err
	}
	w = newPace(ctx, w, bytesPerSecond)
	b, err := newWriter(w, Header{Format: Format, Fanfare: s.Version, Began: s.Clock.Now(), Bytes: estimate})
	if err != nil {
		return err
	}
	if err := s.takeEvents(ctx, b); err != nil {
		return err
	}
	if s.Export != nil {
		if err := s.Export.Days(ctx); err != nil {
			return err
		}
	}
	days, err := s.days() // after the events: an event that was matched in between is in a day
	if err != nil {
		return err
	}
	for _, name := range days {
		if err := s.takeFile(ctx, b, path.Join(daysDir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) { // the day was removed in the meantime
			return err
		}
	}
	for _, part := range []string{sessionsPart, mailboxesPart} {
		if s.Export != nil {
			export := s.Export.Sessions
			if part == mailboxesPart {
				export = s.Export.Mailboxes
			}
			if err := export(ctx); err != nil {
				return err
			}
		}
		if err := s.takeFile(ctx, b, part); err != nil && !errors.Is(err, fs.ErrNotExist) { // no server of this version has used the directory
			return err
		}
	}
	if err := s.takeKeys(b); err != nil {
		return err
	}
	if s.Export != nil {
		if err := s.Export.Control(ctx); err != nil {
			return err
		}
	}
	if err := s.takeFile(ctx, b, controlPart); err != nil {
		return err
	}
	return b.end(s.Clock.Now())
}

// estimate adds up the current size of the files.
func (s *Source) estimate() (int64, error) {
	if s.Export != nil {
		return s.Export.Bytes, nil
	}
	days, err := s.days()
	if err != nil {
		return 0, err
	}
	var bytes int64
	for _, name := range append(days, filepath.Join("..", controlPart), filepath.Join("..", sessionsPart), filepath.Join("..", mailboxesPart)) {
		for _, suffix := range []string{"", "-wal"} {
			if info, err := os.Stat(filepath.Join(s.Dir, daysDir, name) + suffix); err == nil {
				bytes += info.Size()
			}
		}
	}
	return bytes, nil
}

// days lists the files of days, oldest first.
func (s *Source) days() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(s.store(), daysDir)) // sorted by name
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var days []string
	for _, entry := range entries {
		if isDay(entry.Name()) {
			days = append(days, entry.Name())
		}
	}
	return days, err
}

// takeEvents writes groups of events into parts, each group preceded by its length.
func (s *Source) takeEvents(ctx context.Context, b *writer) error {
	var gathered []byte
	parts := 0
	flush := func() error {
		if len(gathered) == 0 {
			return nil
		}
		parts++
		err := b.bytes(fmt.Sprintf("%s/%06d", eventsDir, parts), gathered)
		gathered = gathered[:0]
		return err
	}
	err := s.Unmatched(ctx, func(group []byte, events int, highest fanfare.EventSeq) error {
		b.manifest.Events += events
		b.manifest.LastEvent = max(b.manifest.LastEvent, highest)
		gathered = append(binary.AppendUvarint(gathered, uint64(len(group))), group...)
		if len(gathered) < eventsBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// takeFile copies a snapshot of one file of the store.
func (s *Source) takeFile(ctx context.Context, b *writer, name string) (err error) {
	file := filepath.Join(s.store(), filepath.FromSlash(name))
	if _, err := os.Stat(file); err != nil {
		return err
	}
	snapshot, err := s.Snapshot(file)
	if err != nil {
		if _, gone := os.Stat(file); gone != nil {
			return gone
		}
		return err
	}
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	return b.part(name, snapshot.Size(), func(w io.Writer) error { return snapshot.Copy(ctx, w) })
}

// takeKeys copies the keys that cannot be recreated.
func (s *Source) takeKeys(b *writer) error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, keySuffix) || name == notTaken {
			continue
		}
		if !known(name) {
			return fmt.Errorf("a backup cannot contain a key file with the name %s", name)
		}
		key, err := os.ReadFile(filepath.Join(s.Dir, name))
		if err != nil {
			return err
		}
		if err := b.bytes(name, key); err != nil {
			return err
		}
	}
	return nil
}
