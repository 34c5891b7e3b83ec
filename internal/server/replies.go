package server

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/reply"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

// replies are the rules by which answers are read: the built-in ones, and before
// them those of an operator's file. A file that cannot be used leaves what is in
// force: delivery does not stop for a typing error, but log, metrics and doctor
// say so.
type replies struct {
	file   string // "" for none
	logger *slog.Logger

	rules  atomic.Pointer[reply.Rules]
	fault  atomic.Pointer[string]                 // why the file is not in force; nil while it is
	counts [len(fanfare.Classes) + 1]atomic.Int64 // answers by class; the last are those without
	read   version                                // of the file that was looked at last
}

// version tells one content of a file from another.
type version struct {
	at   time.Time
	size int64
}

func newReplies(file string, logger *slog.Logger) *replies {
	r := &replies{file: file, logger: logger}
	r.rules.Store(reply.Builtin())
	r.look()
	return r
}

// repliesLook is how often the file is looked at.
const repliesLook = 2 * time.Second

// run puts changes of the file in force until ctx ends.
func (r *replies) run(ctx context.Context) {
	if r.file == "" {
		return
	}
	for retry.Sleep(ctx, repliesLook) == nil {
		r.look()
	}
}

// look reads the file if it is another one than before.
func (r *replies) look() {
	if r.file == "" {
		return
	}
	info, err := os.Stat(r.file)
	if err != nil {
		r.refuse(err)
		return
	}
	now := version{info.ModTime(), info.Size()}
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
	r.logger.Info("rules for answers are in force", "file", r.file, "rules", len(own.All()))
}

// refuse says once why the file is not in force. It is read again at the next look:
// what was in the way, such as a right, need not show in its version.
func (r *replies) refuse(err error) {
	r.read = version{}
	why := err.Error()
	if known := r.fault.Swap(&why); known == nil || *known != why {
		r.logger.Error("the rules for answers cannot be used, those before stay in force", "file", r.file, "error", err)
	}
}

// of reads the answers to one channel.
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

// Read says what an answer means.
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

// retriesOf are the schedules of a channel: for most answers, and for those of a
// class.
func retriesOf(c *registry.Channel) (deliver.Retry, map[fanfare.Class]deliver.Retry) {
	by := make(map[fanfare.Class]deliver.Retry, len(c.RetryBy))
	for class, waits := range c.RetryBy {
		by[class] = retryOf(waits)
	}
	return retryOf(c.Retry), by
}

func retryOf(waits []registry.Duration) deliver.Retry {
	retry := make(deliver.Retry, len(waits))
	for i, wait := range waits {
		retry[i] = time.Duration(wait)
	}
	return retry
}
