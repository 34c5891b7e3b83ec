package channels

import (
	"context"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/store/retry"
)

// followEvery is the interval at which key files, secret files and DNS records are checked.
const followEvery = 2 * time.Second

// followFiles applies keys whose files have changed, and settings that could not be applied
// before, until ctx ends.
func (c *Channels) followFiles(ctx context.Context) {
	for retry.Sleep(ctx, followEvery) == nil {
		c.reloadKeys()
		c.checkSecrets()
		c.retryFaults(ctx)
		c.serveDeleted(ctx)
	}
}

func (c *Channels) reloadKeys() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conf := range c.parts.Registry.Channels() {
		ch := c.open[conf.Number]
		if ch == nil || ch.fault != "" || len(conf.DKIM) == 0 || c.options.Capture.all() {
			continue
		}
		if !ch.keys.Reload(conf, c.options.Capture.keys, c.options.Records.Published) {
			continue
		}
		c.logBroken(conf, ch.keys.Broken())
		if len(ch.keys.Broken()) == 0 {
			c.logger.Info("reloaded DKIM keys from changed files", "channel", conf.Service+"/"+conf.Name)
		}
	}
}

func (c *Channels) logBroken(conf *catalog.Channel, broken []dkimkeys.Broken) {
	for _, b := range broken {
		c.logger.Error("a DKIM key cannot be used", "channel", conf.Service+"/"+conf.Name, "selector", b.Selector, "domain", b.Domain, "file", b.KeyFile, "signs_as_before", b.Kept, "error", b.Err)
	}
}

// awaitRecords activates keys when their records are published in the DNS, until ctx ends.
func (c *Channels) awaitRecords(ctx context.Context) {
	for retry.Sleep(ctx, followEvery) == nil {
		var lookups sync.WaitGroup
		for _, key := range c.awaitedKeys() {
			lookups.Go(func() { c.options.Records.LookUp(ctx, key) })
		}
		lookups.Wait()
		c.publishKeys()
	}
}

// awaitedKeys returns the keys that would sign now if their record were published, and whose
// record must be looked up again.
func (c *Channels) awaitedKeys() (all []*dkim.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	for _, ch := range c.open {
		for _, key := range ch.keys.All() {
			if key.Waits && !key.From.After(now) && c.options.Records.Due(key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// publishKeys activates keys whose records were seen.
func (c *Channels) publishKeys() {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, configured := false, map[string]bool{}
	for _, conf := range c.parts.Registry.Channels() {
		ch := c.open[conf.Number]
		if ch == nil {
			continue
		}
		for i := range conf.DKIM {
			if k := &conf.DKIM[i]; k.WaitForDNS {
				configured[k.Selector+"._domainkey."+k.Domain] = true
			}
		}
		if ch.keys.Publish(c.options.Records.Published) {
			found = true
			c.logger.Info("the DKIM record of the next key is in the DNS, and the channel signs with it", "channel", conf.Service+"/"+conf.Name)
		}
	}
	if !found {
		return
	}
	if err := c.options.Records.Save(configured); err != nil {
		c.logger.Error("cannot save the list of published DKIM records; the next start looks them up again", "error", err)
	}
}
