package dkimkeys

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// recordsFile holds the records that were seen in the DNS. Without it, the server would replace a
// signing key with its predecessor if the DNS does not answer during a start, and the record of
// the predecessor may be gone.
const recordsFile = "dkim-records.json"

const (
	lookUpEvery   = 10 * time.Second // of one record
	lookUpTimeout = 5 * time.Second
)

// Records knows which records of keys were seen in the DNS. It is safe for concurrent use.
type Records struct {
	file   string
	lookup func(ctx context.Context, name string) ([]string, error)
	clock  clock.Clock
	logger *slog.Logger

	mu       sync.Mutex
	seen     map[string]string    // record by name
	missing  map[string]string    // reason by name, from the last lookup
	lookedUp map[string]time.Time // by name
}

// OpenRecords reads the records that were seen before from a data directory. If it cannot, all
// are looked up again.
func OpenRecords(dir string, lookup func(context.Context, string) ([]string, error), clock clock.Clock, logger *slog.Logger) *Records {
	r := &Records{file: filepath.Join(dir, recordsFile), lookup: lookup, clock: clock, logger: logger, seen: map[string]string{}, missing: map[string]string{}, lookedUp: map[string]time.Time{}}
	text, err := os.ReadFile(r.file)
	if err == nil {
		err = json.Unmarshal(text, &r.seen)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("cannot read the list of published DKIM records; looking up the records again", "file", r.file, "error", err)
	}
	if r.seen == nil {
		r.seen = map[string]string{}
	}
	return r
}

// Published reports whether the record of a key was seen in the DNS.
func (r *Records) Published(key *dkim.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.seen[key.Name()] == key.Record()
}

// WhyMissing returns why the last lookup did not find the record of a key.
func (r *Records) WhyMissing(key *dkim.Key) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.missing[key.Name()]; why != "" {
		return why
	}
	return "its record has not been looked up yet"
}

// Due reports whether the record of a key must be looked up now, and counts this as a lookup.
func (r *Records) Due(key *dkim.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if now.Sub(r.lookedUp[key.Name()]).Abs() < lookUpEvery {
		return false
	}
	r.lookedUp[key.Name()] = now
	return true
}

// LookUp looks the record of a key up.
func (r *Records) LookUp(ctx context.Context, key *dkim.Key) {
	ctx, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	texts, err := r.lookup(ctx, key.Name()+".") // the dot keeps the resolver from appending search domains
	why := ""
	if e, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !e.IsNotFound) {
		why = "its record cannot be looked up in the DNS: " + err.Error()
	} else if err := key.Seen(texts); err != nil {
		why = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.missing[key.Name()] = why; why == "" {
		r.seen[key.Name()] = key.Record()
	}
}

// Save writes the records that were seen of the configured keys, by name, to the data directory.
func (r *Records) Save(configured map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.seen {
		if !configured[name] {
			delete(r.seen, name)
		}
	}
	text, err := json.Marshal(r.seen)
	if err != nil {
		return err
	}
	return durablefile.Write(r.file, text)
}
