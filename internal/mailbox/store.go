package mailbox

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/store"
)

// Options are the settings of a Store.
type Options struct {
	Clock           clock.Clock
	Logger          *slog.Logger
	MaxMessageBytes int64         // of one message; 0: 50 MiB
	MaxMailboxes    int           // of one account; 0: 1,000
	MaxBytes        int64         // quota of new accounts; 0: none
	MaxMessages     int64         // quota of new accounts; 0: none
	Retention       time.Duration // of the outcomes of deliveries; 0: they stay
	Submissions     time.Duration // age at which records of submissions are removed; 0: they stay

	// SearchTexts returns the texts of messages for the index of searches; nil: there is none, and searches read all messages.
	SearchTexts SearchTexts

	// Announce is called after each change with what other stores of the same database cannot know; nil: there are none. It must not block.
	Announce func(Hint)
}

const (
	defaultMaxMessageBytes = 50 << 20
	defaultMaxMailboxes    = 1000
)

// A Store reads and changes mailboxes. Its methods are safe for concurrent use.
type Store struct {
	part     store.Part
	o        Options
	queue    *changeQueue
	numbers  numbers       // of contents
	recalled chan struct{} // has an element when Run must look for recalled broadcasts
	queued   chan struct{} // has an element when IndexSearches must look at the queue
	storing  storeRate     // messages that the index gets
	behind   atomic.Int64  // time since when contents have waited for the index, in nanoseconds; 0: none waited at the last look

	mu       sync.Mutex
	watchers map[AccountID]map[*watcher]struct{}
	access   map[*accessWatcher]struct{}
	blocks   knownBlocks
}

// New returns the store of a database.
func New(db store.Database, o Options) *Store {
	if o.MaxMessageBytes == 0 {
		o.MaxMessageBytes = defaultMaxMessageBytes
	}
	if o.MaxMailboxes == 0 {
		o.MaxMailboxes = defaultMaxMailboxes
	}
	s := &Store{part: db.Mailboxes(), o: o, recalled: make(chan struct{}, 1), queued: make(chan struct{}, 1), watchers: map[AccountID]map[*watcher]struct{}{}, access: map[*accessWatcher]struct{}{}}
	s.queue = newChangeQueue(s.commit)
	return s
}

// Close waits for running changes and refuses new ones. A second call does nothing.
func (s *Store) Close() { s.queue.close() }

// now returns the time in seconds, the unit of all times in the store.
func (s *Store) now() int64 { return s.o.Clock.Now().Unix() }

// A watcher is a call of Watch.
type watcher struct{ changed func(ModSeq) }

// Watch calls changed with the new state after each change that this Store makes to an account or learns of (Hear, Follow), until stop is called.
// changed must not block, and may be called by several goroutines at once, so that an older state can come after a newer one.
func (s *Store) Watch(id AccountID, changed func(ModSeq)) (stop func()) {
	w := &watcher{changed}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers[id] == nil {
		s.watchers[id] = map[*watcher]struct{}{}
	}
	s.watchers[id][w] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers[id], w)
		if len(s.watchers[id]) == 0 {
			delete(s.watchers, id)
		}
	}
}

// notify calls the watchers of an account.
func (s *Store) notify(id AccountID, state ModSeq) {
	s.mu.Lock()
	var all []*watcher
	for w := range s.watchers[id] {
		all = append(all, w)
	}
	s.mu.Unlock()
	for _, w := range all {
		w.changed(state)
	}
}
