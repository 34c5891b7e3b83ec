// Package statusfeed passes the status of the server to the pages that show it, as server-sent events (HTML standard, section 9.2).
//
// State. While there is a listener, a Feed has the last status and, for each view, the text of the last event, which all listeners with that view share.
// It computes the status once per interval for all of them, and nothing while nobody listens.
//
// Failure. If the status cannot be computed, the listeners get an event that says so, and the next status when it can be computed again. A slow reader misses
// events in between, and always gets the latest one: nothing is queued for it.
package statusfeed

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	// Interval is the time between two computations of the status, and therefore the minimum time between two events.
	Interval = 2 * time.Second
	// Retry is the time after which browsers connect again.
	Retry = 2 * time.Second

	// MaxListeners and MaxPerKey limit the listeners of a server and of a key.
	MaxListeners = 200
	MaxPerKey    = 50

	// patience is how long a computation may take.
	patience = 10 * time.Second
)

// The events.
const (
	statusEvent      = "status"
	unavailableEvent = "unavailable"
)

// A View is the part of the status that a key sees.
type View struct {
	Service string // "": all services
	Whole   bool   // also the values of the whole server
}

// Options are the functions of a Feed.
type Options struct {
	// Compute returns the status of the whole server.
	Compute func(ctx context.Context) (wire.Status, error)
	// Status returns the JSON of a view of the status, in one line.
	Status func(s wire.Status, of View) ([]byte, error)
	// Problem returns the JSON of an error that a key may see, in one line.
	Problem func(err error) []byte
	// Started distinguishes the ids of events from those of earlier runs.
	Started time.Time
}

// A Feed computes the status for its listeners. It is safe for concurrent use.
type Feed struct {
	options Options

	mu     sync.Mutex
	total  int
	perKey map[string]int
	views  map[View]*view
	stop   context.CancelFunc // of the computations; nil while nobody listens
	last   *wire.Status       // of the running computations; nil: unknown
	failed error              // why the last computation failed
	number int64              // of the last event
}

// A view has the last event of the listeners that see the same part of the status.
type view struct {
	listeners int
	event     *Event
	changed   chan struct{} // closed when there is another event
}

// An Event is the text of an event in a stream.
type Event struct {
	Text []byte
	name string
	data []byte
}

// New returns a Feed without listeners.
func New(o Options) *Feed {
	return &Feed{options: o, perKey: map[string]int{}, views: map[View]*view{}}
}

// A Listener is one stream.
type Listener struct {
	feed *Feed
	key  string
	of   View
	once sync.Once
}

// Join adds a listener of a key until Leave. It fails with RateLimited or Unavailable if there are too many.
func (f *Feed) Join(key string, of View) (*Listener, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.perKey[key] >= MaxPerKey:
		return nil, &fanfare.Error{Code: fanfare.RateLimited, Message: fmt.Sprintf("this key has %d streams of the status, which is the maximum", MaxPerKey), Hint: "close one first"}
	case f.total >= MaxListeners:
		return nil, &fanfare.Error{Code: fanfare.Unavailable, Message: fmt.Sprintf("the server has %d streams of the status, which is the maximum", MaxListeners), Hint: "close one first, or request /v1/status"}
	}
	f.total++
	f.perKey[key]++
	v := f.views[of]
	if v == nil {
		v = &view{changed: make(chan struct{})}
		f.views[of] = v
		f.show(of, v)
	}
	v.listeners++
	if f.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		f.stop = stop
		go f.run(ctx)
	}
	return &Listener{feed: f, key: key, of: of}, nil
}

// Leave removes the listener. It may be called twice.
func (l *Listener) Leave() {
	l.once.Do(func() {
		f := l.feed
		f.mu.Lock()
		defer f.mu.Unlock()
		f.total--
		if f.perKey[l.key]--; f.perKey[l.key] == 0 {
			delete(f.perKey, l.key)
		}
		if v := f.views[l.of]; v.listeners == 1 {
			delete(f.views, l.of)
		} else {
			v.listeners--
		}
		if f.total == 0 {
			f.stop()
			f.stop, f.last, f.failed = nil, nil, nil
		}
	})
}

// Latest returns the last event of the listener, nil before the first one, and a channel that is closed when there is another one.
func (l *Listener) Latest() (event *Event, changed <-chan struct{}) {
	l.feed.mu.Lock()
	defer l.feed.mu.Unlock()
	v := l.feed.views[l.of]
	return v.event, v.changed
}

// run computes the status until ctx ends.
func (f *Feed) run(ctx context.Context) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		f.compute(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (f *Feed) compute(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := f.options.Compute(limited)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return // the listeners have left, and others may have joined
	}
	f.last, f.failed = &s, err
	for of, v := range f.views {
		f.show(of, v)
	}
}

// show makes the last status the event of a view, unless it is that already.
func (f *Feed) show(of View, v *view) {
	if f.last == nil {
		return
	}
	e, err := &Event{name: statusEvent}, f.failed
	if err == nil {
		e.data, err = f.options.Status(*f.last, of)
	}
	if err != nil {
		e.name, e.data = unavailableEvent, f.options.Problem(err)
	}
	if v.event != nil && v.event.name == e.name && bytes.Equal(v.event.data, e.data) {
		return
	}
	f.number++
	id := strconv.FormatInt(f.options.Started.UnixMilli(), 36) + "-" + strconv.FormatInt(f.number, 10)
	e.Text = fmt.Appendf(nil, "id: %s\nevent: %s\ndata: %s\n\n", id, e.name, e.data)
	v.event = e
	close(v.changed)
	v.changed = make(chan struct{})
}
