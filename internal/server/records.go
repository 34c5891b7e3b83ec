package server

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
	"fanfare.dev/fanfare/internal/datadir"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/store/retry"
)

// recordsFile has the records of keys that were seen in the DNS. A key that signs must not
// give way to the one before it because the DNS does not answer at a start: the record of
// that one may be gone.
const recordsFile = "dkim-records.json"

// How often the record of a key that waits is looked up, and how long for.
const (
	recordLook     = 10 * time.Second
	recordPatience = 5 * time.Second
)

// records knows of which keys the records have been seen in the DNS.
type records struct {
	file   string
	lookup func(ctx context.Context, name string) ([]string, error)
	clock  clock.Clock
	logger *slog.Logger

	mu      sync.Mutex
	known   map[string]string    // by name, as they were seen
	missing map[string]string    // by name, why not yet
	looked  map[string]time.Time // by name, when last
}

// newRecords reads what was seen before. A file that cannot be read is as none: the
// records are looked up again.
func newRecords(dir string, lookup func(context.Context, string) ([]string, error), clock clock.Clock, logger *slog.Logger) *records {
	r := &records{file: filepath.Join(dir, recordsFile), lookup: lookup, clock: clock, logger: logger, known: map[string]string{}, missing: map[string]string{}, looked: map[string]time.Time{}}
	text, err := os.ReadFile(r.file)
	if err == nil {
		err = json.Unmarshal(text, &r.known)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("which DKIM records were seen in the DNS cannot be read, they are looked up again", "file", r.file, "error", err)
	}
	if r.known == nil {
		r.known = map[string]string{}
	}
	return r
}

// seen reports whether the record of a key has been in the DNS.
func (r *records) seen(key *dkim.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[key.Name()] == key.Record()
}

// why is the reason for which a record was not seen when it was looked up last.
func (r *records) why(key *dkim.Key) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if why := r.missing[key.Name()]; why != "" {
		return why
	}
	return "its record was not looked up yet"
}

// due reports whether the record of a key is to be looked up now.
func (r *records) due(key *dkim.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if now.Sub(r.looked[key.Name()]).Abs() < recordLook {
		return false
	}
	r.looked[key.Name()] = now
	return true
}

// look looks a record up, and reports whether it is there.
func (r *records) look(ctx context.Context, key *dkim.Key) bool {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	texts, err := r.lookup(ctx, key.Name()+".") // without the domains that the resolver would add
	why := ""
	if e, ok := errors.AsType[*net.DNSError](err); err != nil && (!ok || !e.IsNotFound) {
		why = "its record cannot be looked up in the DNS: " + err.Error()
	} else if err := key.Seen(texts); err != nil {
		why = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing[key.Name()] = why
	if why != "" {
		return false
	}
	r.known[key.Name()] = key.Record()
	return true
}

// keep writes down what was seen, of the keys that are configured.
func (r *records) keep(configured map[string]bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.known {
		if !configured[name] {
			delete(r.known, name)
		}
	}
	text, err := json.Marshal(r.known)
	if err != nil {
		return err
	}
	return datadir.WriteFile(r.file, text)
}

// awaitRecords has keys sign once their records are in the DNS, until ctx ends.
func (o *outlets) awaitRecords(ctx context.Context) {
	for retry.Sleep(ctx, keysLook) == nil {
		var looking sync.WaitGroup
		for _, key := range o.awaited() {
			looking.Go(func() { o.records.look(ctx, key) })
		}
		looking.Wait()
		o.publishKeys()
	}
}

// awaited are the keys that would sign now if their record was seen, where it is to be
// looked up again.
func (o *outlets) awaited() (all []*dkim.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	for _, out := range o.open {
		for _, key := range out.keys.all() {
			if key.Waits && !key.From.After(now) && o.records.due(key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// publishKeys puts keys in force whose records have been seen.
func (o *outlets) publishKeys() {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, configured := false, map[string]bool{}
	for _, channel := range o.registry.Channels() {
		out := o.open[channel.Number]
		if out == nil {
			continue
		}
		for i := range channel.DKIM {
			if k := &channel.DKIM[i]; k.WaitForDNS {
				configured[k.Selector+"._domainkey."+k.Domain] = true
			}
		}
		if out.keys.publish(o.records.seen) {
			found = true
			o.logger.Info("the DKIM record of the next key is in the DNS, and the channel signs with it", "channel", channel.Service+"/"+channel.Name)
		}
	}
	if !found {
		return
	}
	if err := o.records.keep(configured); err != nil {
		o.logger.Error("which DKIM records were seen cannot be kept, they are looked up again by the next start", "error", err)
	}
}
