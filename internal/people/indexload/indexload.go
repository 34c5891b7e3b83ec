// Package indexload fills the match index with the subscriptions that are read from the database at
// start. A Loader works in a separate goroutine from the reading, because each takes about half
// of the start time. The registry uses it.
package indexload

import (
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// chunkSize is the number of entries of a topic that the match index gets at a time while
// the registry is loaded, and loadAhead the number of chunks that may wait for it.
const (
	chunkSize       = 4096
	maxQueuedChunks = 2
)

// A Loader collects entries and inserts them into the index. Add and Close are for one goroutine.
type Loader struct {
	insert    func(condition.Key, []condition.Entry) error
	partial   map[condition.Key]*chunk
	full      chan *chunk
	free      chan *chunk
	done      chan struct{} // closed at the end or at the first failure
	err       error         // valid once done is closed
	onInvalid func(of condition.Key, place fanfare.RowID, err error)
}

// A chunk has entries of one topic and one buffer for their params. Chunks are reused.
type chunk struct {
	topic   condition.Key
	entries []condition.Entry
	params  []byte
}

// New returns a Loader that inserts with a function of the index. It leaves out entries that this
// version rejects as invalid, which an older version accepted, and calls onInvalid for each.
func New(insert func(condition.Key, []condition.Entry) error, refuse func(of condition.Key, place fanfare.RowID, err error)) *Loader {
	f := &Loader{insert: insert, onInvalid: refuse, partial: map[condition.Key]*chunk{},
		full: make(chan *chunk, maxQueuedChunks), free: make(chan *chunk, maxQueuedChunks+1), done: make(chan struct{})}
	go f.run()
	return f
}

// run inserts chunks until there are no more.
func (f *Loader) run() {
	defer close(f.done)
	for c := range f.full {
		if err := f.addToIndex(c); err != nil {
			f.err = fmt.Errorf("fill the matching index: %w", err)
			return
		}
		clear(c.entries)
		c.entries, c.params = c.entries[:0], c.params[:0]
		select {
		case f.free <- c:
		default:
		}
	}
}

// addToIndex inserts a chunk. If it has an invalid entry, it inserts the entries one by one.
func (f *Loader) addToIndex(c *chunk) error {
	err := f.insert(c.topic, c.entries)
	if fanfare.CodeOf(err) != fanfare.Invalid {
		return err
	}
	for i := range c.entries {
		err := f.insert(c.topic, c.entries[i:i+1])
		if fanfare.CodeOf(err) == fanfare.Invalid {
			f.onInvalid(c.topic, c.entries[i].Place, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Add adds an entry. The caller may reuse the params of the entry afterwards.
func (f *Loader) Add(topic condition.Key, e condition.Entry) error {
	c := f.partial[topic]
	if c == nil {
		c = f.empty()
		c.topic, f.partial[topic] = topic, c
	}
	if e.Params != nil {
		at := len(c.params)
		c.params = append(c.params, e.Params...)
		e.Params = c.params[at:len(c.params):len(c.params)]
	}
	if c.entries = append(c.entries, e); len(c.entries) < chunkSize {
		return nil
	}
	delete(f.partial, topic)
	return f.send(c)
}

// empty returns an empty chunk, a used one if possible.
func (f *Loader) empty() *chunk {
	select {
	case c := <-f.free:
		return c
	default:
		return new(chunk)
	}
}

func (f *Loader) send(c *chunk) error {
	select {
	case f.full <- c:
		return nil
	case <-f.done:
		return f.err
	}
}

// Close waits until all entries are in the index, or returns the first failure.
func (f *Loader) Close() error {
	for _, c := range f.partial {
		if err := f.send(c); err != nil {
			return err
		}
	}
	close(f.full)
	<-f.done
	return f.err
}
