package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
)

// Deliveries is the record of what was sent: a file per day of receipt. Its
// methods are safe for concurrent use; writes to one day wait for each other.
type Deliveries struct {
	dir        string
	durability Durability

	mu     sync.Mutex
	days   map[fanfare.Day]*day
	closed bool
}

const (
	dayPrefix = "deliveries-"
	daySuffix = ".db"
)

// OpenDeliveries opens the record in a directory. Files are opened when they
// are first asked for.
func OpenDeliveries(dir string, durability Durability) (*Deliveries, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Deliveries{dir: dir, durability: durability, days: map[fanfare.Day]*day{}}, nil
}

// Close closes all files; nothing can be read or written from then on.
func (s *Deliveries) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, d := range s.days {
		errs = append(errs, d.close())
	}
	s.days, s.closed = map[fanfare.Day]*day{}, true
	return errors.Join(errs...)
}

// Days lists the days that have a file, newest first.
func (s *Deliveries) Days() ([]fanfare.Day, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var days []fanfare.Day
	for _, entry := range entries {
		name, ok := strings.CutPrefix(entry.Name(), dayPrefix)
		if !ok {
			continue
		}
		if name, ok = strings.CutSuffix(name, daySuffix); !ok {
			continue
		}
		if d, err := fanfare.ParseDay(name); err == nil {
			days = append(days, d)
		}
	}
	slices.SortFunc(days, func(a, b fanfare.Day) int { return int(b - a) })
	return days, nil
}

// Remove deletes the file of a day and all it holds.
func (s *Deliveries) Remove(of fanfare.Day) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.days[of]; d != nil {
		delete(s.days, of)
		if err := d.close(); err != nil {
			return err
		}
	}
	path := s.path(of)
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (s *Deliveries) path(of fanfare.Day) string {
	return filepath.Join(s.dir, dayPrefix+of.String()+daySuffix)
}

// day opens the file of a day, and makes it if asked to.
func (s *Deliveries) day(ctx context.Context, of fanfare.Day, create bool) (*day, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.days[of]; d != nil {
		return d, nil
	}
	if s.closed {
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: "the record is closed"}
	}
	path := s.path(of)
	if !create {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return nil, unknownDay(of)
		}
	}
	d, err := openDay(context.WithoutCancel(ctx), path, of, s.durability)
	if err != nil {
		return nil, diskError(err)
	}
	s.days[of] = d
	return d, nil
}

func unknownDay(of fanfare.Day) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("nothing is recorded for the day %s", of), Hint: "it may be older than the retention"}
}
