package registry

import (
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// loadChunk is how many entries of a topic the match index gets at a time while
// the registry is loaded, and loadAhead how many such chunks may wait for it.
const (
	loadChunk = 4096
	loadAhead = 2
)

// A filling gives the match index what is read from the store, beside the
// reading: either takes about half of the time of a start.
type filling struct {
	conditions Conditions
	partial    map[condition.Key]*chunk
	full       chan *chunk
	free       chan *chunk
	done       chan struct{} // closed at the end, or at the first failure
	err        error         // once done is closed
	refuse     func(of condition.Key, place fanfare.RowID, err error)
}

// A chunk is entries of one topic. Their params lie in one buffer, and both are
// used again.
type chunk struct {
	topic   condition.Key
	entries []condition.Entry
	params  []byte
}

// newFilling begins. refuse is told of entries that the index does not understand,
// which an older version did: they are left out, as the rest cannot wait for them.
func newFilling(conditions Conditions, refuse func(of condition.Key, place fanfare.RowID, err error)) *filling {
	f := &filling{conditions: conditions, refuse: refuse, partial: map[condition.Key]*chunk{},
		full: make(chan *chunk, loadAhead), free: make(chan *chunk, loadAhead+1), done: make(chan struct{})}
	go f.run()
	return f
}

// run takes chunks until there are no more.
func (f *filling) run() {
	defer close(f.done)
	for c := range f.full {
		if err := f.give(c); err != nil {
			f.err = fmt.Errorf("fill the match index: %w", err)
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

// give hands a chunk to the index, or its entries one by one where it has one that is
// not understood.
func (f *filling) give(c *chunk) error {
	err := f.conditions.Add(c.topic, c.entries)
	if fanfare.CodeOf(err) != fanfare.Invalid {
		return err
	}
	for i := range c.entries {
		err := f.conditions.Add(c.topic, c.entries[i:i+1])
		if fanfare.CodeOf(err) == fanfare.Invalid {
			f.refuse(c.topic, c.entries[i].Place, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// add takes an entry whose params are only valid now.
func (f *filling) add(topic condition.Key, e condition.Entry) error {
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
	if c.entries = append(c.entries, e); len(c.entries) < loadChunk {
		return nil
	}
	delete(f.partial, topic)
	return f.hand(c)
}

// empty returns a chunk that was used before, if there is one.
func (f *filling) empty() *chunk {
	select {
	case c := <-f.free:
		return c
	default:
		return new(chunk)
	}
}

func (f *filling) hand(c *chunk) error {
	select {
	case f.full <- c:
		return nil
	case <-f.done:
		return f.err
	}
}

// end returns once all is in the index, or the first failure.
func (f *filling) end() error {
	for _, c := range f.partial {
		if err := f.hand(c); err != nil {
			return err
		}
	}
	close(f.full)
	<-f.done
	return f.err
}
