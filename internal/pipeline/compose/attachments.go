package compose

import (
	"context"
	"slices"
	"sync"

	"fanfare.dev/fanfare/internal/render/mime"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/store/deliveries"
)

// maxCachedBytes bounds the encoded attachments in the cache. Others are read and encoded
// again when they are needed.
const maxCachedBytes = 64 << 20

// Attachments caches the encoded files of messages, so that a file is encoded once for all
// recipients, batches and template versions. It drops the files that were used longest ago.
// It is safe for concurrent use.
type Attachments struct {
	registry *registry.Registry
	store    *deliveries.Store

	mu    sync.Mutex
	known map[string]*mime.EncodedFiles
	order []string // least recently used first
	bytes int
}

// NewAttachments returns an empty cache over the files of templates, in the registry, and
// those of messages, in the store.
func NewAttachments(r *registry.Registry, store *deliveries.Store) *Attachments {
	return &Attachments{registry: r, store: store, known: map[string]*mime.EncodedFiles{}}
}

// Of returns the encoder of an event's messages.
func (a *Attachments) Of(ctx context.Context, posted *fanfare.AcceptedEvent) func(mime.FileSet) (*mime.EncodedFiles, error) {
	return a.Read(func(f *fanfare.File) ([]byte, error) {
		if posted != nil && posted.Direct != nil && slices.Contains(posted.Direct.Files, *f) {
			return a.ofMessage(ctx, fanfare.DayOf(posted.ReceivedAt), f)
		}
		return a.registry.File(ctx, f.Sum)
	})
}

// ofMessage reads a file of a message. The file was stored before the message was accepted,
// which may have been on the day before.
func (a *Attachments) ofMessage(ctx context.Context, day fanfare.Day, f *fanfare.File) ([]byte, error) {
	content, err := a.store.File(ctx, day, f.Sum)
	if err != nil && fanfare.CodeOf(err) == fanfare.NotFound {
		content, err = a.store.File(ctx, day-1, f.Sum)
	}
	return content, err
}

// Read returns an encoder that takes the content of files from read.
func (a *Attachments) Read(read func(*fanfare.File) ([]byte, error)) func(mime.FileSet) (*mime.EncodedFiles, error) {
	return func(of mime.FileSet) (*mime.EncodedFiles, error) {
		key := of.Key()
		if known := a.find(key); known != nil {
			return known, nil
		}
		made, err := of.Encode(read)
		if err == nil {
			a.add(key, made)
		}
		return made, err
	}
}

func (a *Attachments) find(key string) *mime.EncodedFiles {
	a.mu.Lock()
	defer a.mu.Unlock()
	if at := slices.Index(a.order, key); at >= 0 {
		a.order = append(slices.Delete(a.order, at, at+1), key)
	}
	return a.known[key]
}

func (a *Attachments) add(key string, made *mime.EncodedFiles) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known[key] != nil {
		return
	}
	a.known[key], a.order = made, append(a.order, key)
	for a.bytes += made.Size(); a.bytes > maxCachedBytes && len(a.order) > 1; {
		oldest := a.order[0]
		a.bytes -= a.known[oldest].Size()
		delete(a.known, oldest)
		a.order = slices.Delete(a.order, 0, 1)
	}
}
