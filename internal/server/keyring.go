package server

import (
	"context"
	"time"

	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

// keysLook is how often the files of keys are looked at.
const keysLook = 2 * time.Second

// rereadKeys puts keys in force whose files have changed, and settings that could
// not be before, until ctx ends.
func (o *outlets) rereadKeys(ctx context.Context) {
	for retry.Sleep(ctx, keysLook) == nil {
		o.lookAtKeys()
		o.lookAtSecrets()
		o.mendFaulty(ctx)
		o.serveClosed(ctx)
	}
}

func (o *outlets) lookAtKeys() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, channel := range o.registry.Channels() {
		out := o.open[channel.Number]
		if out == nil || out.fault != "" || len(channel.DKIM) == 0 || o.captured.all() {
			continue
		}
		if !out.keys.Reload(channel, o.captured.keys, o.records.Published) {
			continue
		}
		o.tellBroken(channel, out.keys.Broken())
		if len(out.keys.Broken()) == 0 {
			o.logger.Info("DKIM keys were read anew from changed files", "channel", channel.Service+"/"+channel.Name)
		}
	}
}

// tellBroken logs keys that cannot be read.
func (o *outlets) tellBroken(c *registry.Channel, broken []dkimkeys.Broken) {
	for _, b := range broken {
		o.logger.Error("a DKIM key cannot be used", "channel", c.Service+"/"+c.Name, "selector", b.Selector, "domain", b.Domain, "file", b.KeyFile, "signs_as_before", b.Kept, "error", b.Err)
	}
}
