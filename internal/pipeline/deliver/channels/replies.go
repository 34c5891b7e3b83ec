package channels

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/store/retry"
)

// replies contains the rules that classify the replies of next hops: those in the operator's
// file, then the built-in ones. If the file cannot be used, the previous rules stay active. A
// typing error does not stop deliveries, but is logged and reported by metrics and doctor.
type replies struct {
	file   string // "" for none
	logger *slog.Logger

	rules  atomic.Pointer[reply.Rules]
	fault  atomic.Pointer[string]                 // why the file is not used; nil while it is
	counts [len(fanfare.Classes) + 1]atomic.Int64 // replies by class; the last counts those without
	read   fileVersion                            // that was read last
}

type fileVersion struct {
	modified  time.Time
	sizeBytes int64
}

func newReplies(file string, logger *slog.Logger) *replies {
	r := &replies{file: file, logger: logger}
	r.rules.Store(reply.Builtin())
	r.reload()
	return r
}

// reloadEvery is the interval at which the file is checked.
const reloadEvery = 2 * time.Second

// run applies changes of the file until ctx ends.
func (r *replies) run(ctx context.Context) {
	if r.file == "" {
		return
	}
	for retry.Sleep(ctx, reloadEvery) == nil {
		r.reload()
	}
}

// reload reads the file if it has changed.
func (r *replies) reload() {
	if r.file == "" {
		return
	}
	info, err := os.Stat(r.file)
	if err != nil {
		r.refuse(err)
		return
	}
	now := fileVersion{info.ModTime(), info.Size()}
	if now == r.read {
		return
	}
	r.read = now
	own, err := reply.ReadFile(r.file)
	if err != nil {
		r.refuse(err)
		return
	}
	r.rules.Store(own.Before(reply.Builtin()))
	r.fault.Store(nil)
	r.logger.Info("loaded the reply rules", "file", r.file, "rules", len(own.All()))
}

// refuse logs once why the file is not used. The file is read again at the next check, because
// the cause, such as a missing permission, may not be visible in its version.
func (r *replies) refuse(err error) {
	r.read = fileVersion{}
	why := err.Error()
	if known := r.fault.Swap(&why); known == nil || *known != why {
		r.logger.Error("cannot use the file of reply rules; the previous rules remain active", "file", r.file, "error", err)
	}
}

// of returns the classifier of replies to one channel.
func (r *replies) of(people *registry.Registry, channel uint16) deliver.Replies {
	return &channelReplies{r, func() string {
		if channel, ok := people.Channel(channel); ok {
			return channel.Driver
		}
		return ""
	}}
}

type channelReplies struct {
	*replies
	driver func() string // of the channel now
}

// Read classifies a reply.
func (c *channelReplies) Read(destination string, o *driver.Outcome) deliver.Advice {
	reading := c.rules.Load().Read(c.driver(), destination, o)
	o.Class, o.Verdict, o.RetryAfter = reading.Class, reading.Verdict, reading.RetryAfter
	at := slices.Index(fanfare.Classes[:], o.Class)
	if at < 0 {
		at = len(fanfare.Classes)
	}
	c.counts[at].Add(1)
	return deliver.Advice{Suspend: reading.Suspend, Slow: reading.Slow}
}

// ReplyRules returns the rules that classify replies now.
func (c *Channels) ReplyRules() *reply.Rules { return c.replies.rules.Load() }
