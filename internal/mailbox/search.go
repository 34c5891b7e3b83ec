package mailbox

import (
	"context"
	"errors"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox/searchfilter"
	"fanfare.dev/fanfare/internal/store"
	"fanfare.dev/fanfare/internal/store/retry"
)

// The index of searches has a filter for each content that a message has. A transaction that adds a message puts its content into a queue; IndexSearches
// makes the filters later. A search reads every message that has no filter, so that its results never depend on the queue. A filter lives as long as its
// content. Messages of broadcasts that were stored as blocks are not indexed: their contents are almost the same, and there are as many as accounts.

// SearchTexts calls add with every text in which a search of any protocol looks for something in a message.
type SearchTexts func(message []byte, tree *mimetree.Part, add func(text string))

const (
	indexedAtOnce      = 64      // contents in one transaction
	indexedBytesAtOnce = 4 << 20 // of contents in one transaction, except for the last one
	maxIndexedBytes    = 8 << 20 // of a content; the filter of a larger one excludes nothing
	indexInterval      = 5 * time.Second
	maxIndexPause      = time.Second
	queuedAtOnce       = 1000                   // contents in one transaction
	gatherWait         = 500 * time.Millisecond // in which messages gather for a transaction
	busyContents       = 500                    // messages stored in a second with which the indexer waits
	busyWait           = 250 * time.Millisecond
	maxIndexLag        = time.Minute // after which the indexer does not wait for deliveries any more
)

// queueForSearch puts the contents of messages into the queue of the index. A content that has a filter leaves the queue without work.
func (u *unit) queueForSearch(group []*change) error {
	if u.o.SearchTexts == nil {
		return nil
	}
	var ids []ContentID
	for _, c := range group {
		for _, content := range c.contents {
			if content.isMessage && content.base == 0 {
				ids = append(ids, content.id)
			}
		}
	}
	u.queued = len(ids)
	return queueContents(u.session, ids)
}

func queueContents(session store.Session, ids []ContentID) error {
	ids = distinctContents(ids)
	if len(ids) == 0 {
		return nil
	}
	return session.Insert("search_queue_insert", len(ids), func(i int, to store.Values) { to.Int64(int64(ids[i])) })
}

// distinctContents returns the contents in ascending order, in which all transactions lock rows.
func distinctContents(ids []ContentID) []ContentID {
	uses := make(map[ContentID]int64, len(ids))
	for _, id := range ids {
		uses[id]++
	}
	return sortedKeys(uses)
}

// IndexSearches makes the filters of the contents in the queue until ctx ends. Several stores of a database may run it at once, but one is enough.
func (s *Store) IndexSearches(ctx context.Context) {
	if s.o.SearchTexts == nil {
		return
	}
	s.report(ctx, "cannot queue messages for the index of searches", s.queueMissing(ctx))
	ticker := time.NewTicker(indexInterval)
	defer ticker.Stop()
	ix := &indexer{store: s}
	for {
		if s.yieldsToDeliveries() {
			if retry.Sleep(ctx, busyWait) != nil {
				return
			}
			continue
		}
		began := time.Now()
		n, err := ix.indexBatch(ctx)
		s.report(ctx, "cannot index messages for searches", err)
		if err == nil && n > 0 {
			// Deliveries and sessions get at least half of the time.
			if retry.Sleep(ctx, min(time.Since(began), maxIndexPause)) != nil {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-s.queued:
			if retry.Sleep(ctx, gatherWait) != nil {
				return
			}
		}
	}
}

// yieldsToDeliveries reports whether the indexer waits because many messages are being stored. It waits for maxIndexLag at most.
func (s *Store) yieldsToDeliveries() bool {
	now := s.o.Clock.Now()
	if !s.storing.busy(now) {
		return false
	}
	s.behind.CompareAndSwap(0, now.UnixNano())
	return now.UnixNano()-s.behind.Load() < int64(maxIndexLag)
}

// A storeRate counts the messages that were stored in the current second and in the one before.
type storeRate struct {
	mu      sync.Mutex
	second  int64
	current int
	last    int
}

func (r *storeRate) add(now time.Time, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	r.current += n
}

// turn begins the current second.
func (r *storeRate) turn(now time.Time) {
	switch second := now.Unix(); second - r.second {
	case 0:
	case 1:
		r.second, r.last, r.current = second, r.current, 0
	default:
		r.second, r.last, r.current = second, 0, 0
	}
}

func (r *storeRate) busy(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	return max(r.current, r.last) >= busyContents
}

// An indexer makes filters, one batch after the other.
type indexer struct {
	store   *Store
	builder searchfilter.Builder
}

// Index makes the filters of some contents in the queue, and returns how many contents have left it. IndexSearches does it in the background.
func (s *Store) Index(ctx context.Context) (n int, err error) {
	if s.o.SearchTexts == nil {
		return 0, nil
	}
	return (&indexer{store: s}).indexBatch(ctx)
}

func (ix *indexer) indexBatch(ctx context.Context) (n int, err error) {
	s := ix.store
	queue, err := s.contentIDs(ctx, "search_queue_first", int64(indexedAtOnce))
	if err != nil {
		return 0, err
	}
	if s.noteQueue(len(queue)); len(queue) == 0 {
		return 0, nil
	}
	known, err := s.searchFilters(ctx, queue)
	if err != nil {
		return 0, err
	}
	filters := map[ContentID]searchfilter.Filter{}
	bytes := int64(0)
	for i, id := range queue {
		if bytes >= indexedBytesAtOnce {
			queue = queue[:i]
			break
		}
		if _, has := known[id]; has {
			continue
		}
		filter, size, err := ix.filter(ctx, id)
		if errors.Is(err, ErrNoMessage) {
			continue // it was removed
		}
		if err != nil {
			return 0, err
		}
		filters[id] = filter
		bytes += size
	}
	failpoint.Hit("before-search-index")
	err = s.part.Write(ctx, func(session store.Session) error {
		var made []ContentID
		err := session.EachOf("search_queue_remove", len(queue), func(i int) []any { return []any{int64(queue[i])} }, func(i int, _ store.Row) error {
			if _, has := filters[queue[i]]; has {
				made = append(made, queue[i])
			}
			return nil
		})
		if err != nil || len(made) == 0 {
			return err
		}
		return session.Insert("search_filter_insert", len(made), func(i int, to store.Values) {
			to.Int64(int64(made[i]))
			to.Int64(searchfilter.Version)
			to.Bytes(filters[made[i]])
		})
	})
	if err == nil {
		failpoint.Hit("after-search-index")
	}
	return len(queue), err
}

// filter makes the filter of a content. A content that cannot be read gets one that excludes nothing, because a search reports its error.
func (ix *indexer) filter(ctx context.Context, id ContentID) (f searchfilter.Filter, size int64, err error) {
	message, tree, size, err := ix.store.searchSource(ctx, id)
	if err != nil || tree == nil {
		return searchfilter.Filter{}, size, err
	}
	ix.store.o.SearchTexts(message, tree, ix.builder.Add)
	return ix.builder.Filter(), size, nil
}

// searchSource reads a content and its structure. The structure is nil if the content cannot or must not be indexed. It fails with ErrNoMessage.
func (s *Store) searchSource(ctx context.Context, id ContentID) (message []byte, tree *mimetree.Part, size int64, err error) {
	found := false
	err = s.part.Snapshot(ctx, func(session store.Session) error {
		message, tree, size, found = nil, nil, 0, false
		empty := false
		err := session.Each("search_source_size", func(r store.Row) error { found, size, empty = true, r.Int64(0), r.Int64(1) == 0; return nil }, int64(id))
		if err != nil || !found || size > maxIndexedBytes || empty {
			return err
		}
		var structure []byte
		err = session.Each("search_source", func(r store.Row) error { structure, message = r.Bytes(0), r.Bytes(1); return nil }, int64(id))
		if err != nil {
			return err
		}
		if read, err := mimetree.Read(structure); err == nil {
			tree = read
		}
		return nil
	})
	if err == nil && !found {
		err = noMessage()
	}
	return message, tree, size, err
}

// searchFilters returns the filters of those contents that have one of this version.
func (s *Store) searchFilters(ctx context.Context, ids []ContentID) (filters map[ContentID]searchfilter.Filter, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = s.part.Read(ctx, func(session store.Session) error {
		filters = make(map[ContentID]searchfilter.Filter, len(ids))
		return session.EachOf("search_filter", len(ids), func(i int) []any { return []any{int64(ids[i]), int64(searchfilter.Version)} }, func(i int, r store.Row) error {
			filters[ids[i]] = r.Bytes(0)
			return nil
		})
	})
	return filters, err
}

// The number of filters that a SearchReader reads at once grows from the first to the last, because many searches look at few messages.
const (
	firstWindow = 8
	lastWindow  = 256
)

// A SearchReader tells which messages of a list a search need not read. It is for one goroutine.
type SearchReader struct {
	store   *Store
	content func(i int) ContentID
	n       int
	filters map[ContentID]searchfilter.Filter
	from    int // the filters are those of the messages from here
	to      int // to here
	window  int
}

// SearchReader returns a reader for n messages, whose contents content returns. The calls of MayContain should be in ascending order of the messages.
func (s *Store) SearchReader(n int, content func(i int) ContentID) *SearchReader {
	return &SearchReader{store: s, content: content, n: n, window: firstWindow}
}

// MayContain reports whether a message can contain a text. A message that is not in the index can.
func (r *SearchReader) MayContain(ctx context.Context, i int, pattern searchfilter.Pattern) (bool, error) {
	if r.store.o.SearchTexts == nil || pattern.IsEmpty() {
		return true, nil
	}
	if i < r.from || i >= r.to {
		ids := make([]ContentID, 0, r.window)
		for k := i; k < min(r.n, i+r.window); k++ {
			if id := r.content(k); id != 0 {
				ids = append(ids, id)
			}
		}
		filters, err := r.store.searchFilters(ctx, distinctContents(ids))
		if err != nil {
			return false, err
		}
		r.filters, r.from, r.to = filters, i, i+r.window
		r.window = min(2*r.window, lastWindow)
	}
	filter, known := r.filters[r.content(i)]
	return !known || filter.MayContain(pattern), nil
}

// contentIDs reads the contents that a statement returns.
func (s *Store) contentIDs(ctx context.Context, statement string, args ...any) (ids []ContentID, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		ids = nil
		return session.Each(statement, func(r store.Row) error { ids = append(ids, ContentID(r.Int64(0))); return nil }, args...)
	})
	return ids, err
}

// queueMissing queues the contents of messages that have no filter of this version: the index was off when they came, or another version made their
// filters. Uploads may be among them.
func (s *Store) queueMissing(ctx context.Context) error {
	after := ContentID(0)
	for ctx.Err() == nil {
		ids, err := s.contentIDs(ctx, "search_missing_after", int64(searchfilter.Version), int64(after), int64(queuedAtOnce))
		if err != nil || len(ids) == 0 {
			return err
		}
		if err := s.part.Write(ctx, func(session store.Session) error { return queueContents(session, ids) }); err != nil {
			return err
		}
		after = ids[len(ids)-1]
	}
	return ctx.Err()
}

// A Reindexing is a part of the work of Reindex.
type Reindexing struct {
	Queued int       // contents that were put into the queue
	Next   ContentID // after which the next part begins; 0: there is none
}

// Reindex makes messages of an account, or of all accounts with 0, be indexed again: it removes the filters of contents with numbers above after, and puts
// the contents into the queue. Uploads may be among those of all accounts. Searches read the contents until they are indexed. A call does a part of the work;
// the caller goes on with Next.
func (s *Store) Reindex(ctx context.Context, of AccountID, after ContentID) (done Reindexing, err error) {
	if s.o.SearchTexts == nil {
		return done, &fanfare.Error{Code: fanfare.Conflict, Message: "the index of searches is off", Hint: "set mailbox_search_index to true and restart the server"}
	}
	err = s.part.Write(ctx, func(session store.Session) error {
		var ids []ContentID
		add := func(r store.Row) error { ids = append(ids, ContentID(r.Int64(0))); return nil }
		var err error
		if of == 0 {
			err = session.Each("search_contents_after", add, int64(after), int64(queuedAtOnce))
		} else {
			err = session.Each("search_contents_of", add, int64(of), int64(after), int64(queuedAtOnce))
		}
		if err != nil {
			return err
		}
		done = Reindexing{Queued: len(ids)}
		if len(ids) == queuedAtOnce {
			done.Next = ids[len(ids)-1]
		}
		if err := session.EachOf("search_filter_remove", len(ids), func(i int) []any { return []any{int64(ids[i])} }, func(int, store.Row) error { return nil }); err != nil {
			return err
		}
		return queueContents(session, ids)
	})
	if err == nil && done.Queued > 0 {
		s.wakeIndexer()
	}
	return done, err
}

// A SearchIndex is the state of the index of searches.
type SearchIndex struct {
	Enabled bool
	Waiting int       // messages with different contents that wait, at most maxCounted
	Since   time.Time // since when some have waited without a break; zero: none is known to wait
}

const maxCounted = 1_000_000

// SearchIndex returns the state of the index. Since is known to the store that runs IndexSearches.
func (s *Store) SearchIndex(ctx context.Context) (index SearchIndex, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		index = SearchIndex{Enabled: s.o.SearchTexts != nil}
		return session.Each("search_queue_count", func(r store.Row) error { index.Waiting = int(r.Int64(0)); return nil }, int64(maxCounted))
	})
	if since := s.behind.Load(); since != 0 && index.Waiting > 0 {
		index.Since = time.Unix(0, since).UTC()
	}
	return index, err
}

// noteQueue remembers since when contents have waited. n is how many the indexer found.
func (s *Store) noteQueue(n int) {
	if n == 0 {
		s.behind.Store(0)
		return
	}
	s.behind.CompareAndSwap(0, s.o.Clock.Now().UnixNano())
}

// wakeIndexer makes the indexer of this store look at the queue.
func (s *Store) wakeIndexer() {
	select {
	case s.queued <- struct{}{}:
	default:
	}
}
