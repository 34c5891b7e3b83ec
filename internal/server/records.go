package server

import (
	"context"
	"sync"

	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/store/retry"
)

// awaitRecords has keys sign once their records are in the DNS, until ctx ends.
func (o *outlets) awaitRecords(ctx context.Context) {
	for retry.Sleep(ctx, keysLook) == nil {
		var looking sync.WaitGroup
		for _, key := range o.awaited() {
			looking.Go(func() { o.records.LookUp(ctx, key) })
		}
		looking.Wait()
		o.publishKeys()
	}
}

// awaited are the keys that would sign now if their record was seen, where it is to be
// looked up again.
func (o *outlets) awaited() (all []*dkim.Key) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	for _, out := range o.open {
		for _, key := range out.keys.All() {
			if key.Waits && !key.From.After(now) && o.records.Due(key) {
				all = append(all, key)
			}
		}
	}
	return all
}

// publishKeys puts keys in force whose records have been seen.
func (o *outlets) publishKeys() {
	o.mu.Lock()
	defer o.mu.Unlock()
	found, configured := false, map[string]bool{}
	for _, channel := range o.registry.Channels() {
		out := o.open[channel.Number]
		if out == nil {
			continue
		}
		for i := range channel.DKIM {
			if k := &channel.DKIM[i]; k.WaitForDNS {
				configured[k.Selector+"._domainkey."+k.Domain] = true
			}
		}
		if out.keys.Publish(o.records.Published) {
			found = true
			o.logger.Info("the DKIM record of the next key is in the DNS, and the channel signs with it", "channel", channel.Service+"/"+channel.Name)
		}
	}
	if !found {
		return
	}
	if err := o.records.Save(configured); err != nil {
		o.logger.Error("which DKIM records were seen cannot be kept, they are looked up again by the next start", "error", err)
	}
}
