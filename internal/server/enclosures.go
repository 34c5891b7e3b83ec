package server

import (
	"context"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// enclosures are the files of mails as they leave: those that were needed last, encoded
// once for all letters, batches and versions that have them. It is safe for concurrent
// use.
type enclosures struct {
	registry *registry.Registry
	store    *deliveries.Store

	mu    sync.Mutex
	known map[string]*render.Enclosure
	order []string // the one that was needed longest ago first
	bytes int
}

// maxEnclosedBytes is how much stays encoded, beside what letters have. What is beyond
// is read and encoded again where it is needed.
const maxEnclosedBytes = 64 << 20

// of returns what encodes the files of an event's mails.
func (e *enclosures) of(ctx context.Context, posted *fanfare.Posted) func(render.Enclosing) (*render.Enclosure, error) {
	return e.by(func(f *fanfare.File) ([]byte, error) {
		if posted != nil && posted.Direct != nil && slices.Contains(posted.Direct.Files, *f) {
			return e.ofMessage(ctx, fanfare.DayOf(posted.ReceivedAt), f)
		}
		return e.registry.File(ctx, f.Sum)
	})
}

// ofMessage reads a file of a message. It was kept before the message was accepted,
// which may have been on the day after.
func (e *enclosures) ofMessage(ctx context.Context, day fanfare.Day, f *fanfare.File) ([]byte, error) {
	content, err := e.store.File(ctx, day, f.Sum)
	if gone(err) {
		content, err = e.store.File(ctx, day-1, f.Sum)
	}
	return content, err
}

// by returns what encodes files that read reads.
func (e *enclosures) by(read func(*fanfare.File) ([]byte, error)) func(render.Enclosing) (*render.Enclosure, error) {
	return func(of render.Enclosing) (*render.Enclosure, error) {
		key := of.Key()
		if known := e.find(key); known != nil {
			return known, nil
		}
		made, err := of.Encode(read)
		if err == nil {
			e.keep(key, made)
		}
		return made, err
	}
}

func (e *enclosures) find(key string) *render.Enclosure {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at := slices.Index(e.order, key); at >= 0 {
		e.order = append(slices.Delete(e.order, at, at+1), key)
	}
	return e.known[key]
}

func (e *enclosures) keep(key string, made *render.Enclosure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known[key] != nil {
		return
	}
	if e.known == nil {
		e.known = map[string]*render.Enclosure{}
	}
	e.known[key], e.order = made, append(e.order, key)
	for e.bytes += made.Size(); e.bytes > maxEnclosedBytes && len(e.order) > 1; {
		oldest := e.order[0]
		e.bytes -= e.known[oldest].Size()
		delete(e.known, oldest)
		e.order = slices.Delete(e.order, 0, 1)
	}
}

// An allowance is how much of files a dispatch has in letters that were sent by
// themselves, each with files of its own. It belongs to one goroutine that takes and
// waits, and to any that give back.
type allowance struct {
	mu   sync.Mutex
	held int
	room chan struct{} // closed when something is given back; nil: nobody waits
}

const (
	// maxEnclosedAhead is from which size on of such files no further batch is loaded.
	maxEnclosedAhead = 64 << 20
	// maxEnclosedOfBatch is how much a batch may load at a time; the rest of it comes
	// again when this is sent.
	maxEnclosedOfBatch = 32 << 20
)

// wait returns when a batch may be loaded.
func (a *allowance) wait(ctx context.Context) error {
	for {
		a.mu.Lock()
		if a.held < maxEnclosedAhead {
			a.mu.Unlock()
			return nil
		}
		if a.room == nil {
			a.room = make(chan struct{})
		}
		room := a.room
		a.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// add counts files of a batch in, and those that were sent out, with their number negative.
func (a *allowance) add(bytes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held += bytes; bytes < 0 && a.room != nil {
		close(a.room)
		a.room = nil
	}
}
