package registry

import (
	"sync"
	"sync/atomic"
	"time"
)

// progressPause is the time between two lines of the log about a load that takes long,
// and progressRecords after how many records the load looks at the clock.
const (
	progressPause   = 2 * time.Second
	progressRecords = 4096
)

// progress tells the log how far a load is. Subscribers and subscriptions are loaded at
// the same time.
type progress struct {
	opt                        *Options
	subscribers, subscriptions atomic.Int64

	mu     sync.Mutex
	toldAt time.Time
}

func newProgress(opt *Options) *progress { return &progress{opt: opt, toldAt: opt.Now()} }

// add counts a record, and tells the log if it is time.
func (p *progress) add(count *atomic.Int64) {
	if count.Add(1)%progressRecords != 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.opt.Now()
	if now.Sub(p.toldAt) < progressPause {
		return
	}
	p.toldAt = now
	p.opt.Logger.Info("loading subscriptions", "subscribers", p.subscribers.Load(), "subscriptions", p.subscriptions.Load())
}
