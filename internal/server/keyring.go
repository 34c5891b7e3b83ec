package server

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/store/retry"
)

// A keyring has the keys of a channel, which change while its mail is written: when
// the channel names others, when a file has another one, and when the record of one is
// seen in the DNS. What is not of keys is for who holds the lock of the outlets.
type keyring struct {
	keys   atomic.Pointer[[]*dkim.Key]
	files  []version   // of those that were read last
	broken []brokenKey // those whose files cannot be used now
}

// A brokenKey is a key that cannot be read now.
type brokenKey struct {
	registry.DKIMKey
	err  error
	kept bool // it signs as it was read before
}

// all are those in force.
func (k *keyring) all() []*dkim.Key {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// with are the keys of a channel that can be used, given what was read: one that cannot
// be read any more stays as it was read before. seen says whose record is in the DNS.
func (k *keyring) with(c *registry.Channel, read []channelKey, seen func(*dkim.Key) bool) (keys []*dkim.Key, broken []brokenKey) {
	for i, one := range read {
		named := &c.DKIM[i]
		if one.err != nil {
			one.key = k.before(named)
			broken = append(broken, brokenKey{*named, one.err, one.key != nil})
		}
		if one.key != nil {
			one.key.Waits = named.WaitForDNS && !seen(one.key)
			keys = append(keys, one.key)
		}
	}
	return keys, broken
}

// before is a key as it was read before, nil if it was not.
func (k *keyring) before(named *registry.DKIMKey) *dkim.Key {
	for _, old := range k.all() {
		if old.Domain == named.Domain && old.Selector == named.Selector {
			return &dkim.Key{Domain: named.Domain, Selector: named.Selector, From: named.From, Private: old.Private}
		}
	}
	return nil
}

// take puts keys in force. The files had these versions when they were read.
func (k *keyring) take(keys []*dkim.Key, broken []brokenKey, files []version) {
	k.keys.Store(&keys)
	k.files, k.broken = files, broken
}

// publish has those sign whose record is seen now, and reports whether there are any.
func (k *keyring) publish(seen func(*dkim.Key) bool) bool {
	keys := slices.Clone(k.all())
	found := false
	for i, key := range keys {
		if key.Waits && seen(key) {
			keys[i] = &dkim.Key{Domain: key.Domain, Selector: key.Selector, From: key.From, Private: key.Private}
			found = true
		}
	}
	if found {
		k.keys.Store(&keys)
	}
	return found
}

// look reads the keys of a channel anew if a file is another one than before, or could not
// be used: what was in the way need not show in a version. It reports whether keys have
// changed, or which of them are broken.
func (k *keyring) look(c *registry.Channel, read func(*registry.Channel) []channelKey, seen func(*dkim.Key) bool) (changed bool) {
	files := keyFiles(c)
	if slices.Equal(files, k.files) && len(k.broken) == 0 {
		return false
	}
	keys, broken := k.with(c, read(c), seen)
	if slices.Equal(files, k.files) && saying(broken) == saying(k.broken) {
		return false
	}
	k.take(keys, broken, files)
	return true
}

// saying is what is wrong with keys, in one text.
func saying(broken []brokenKey) string {
	var all []string
	for _, b := range broken {
		all = append(all, b.err.Error())
	}
	return strings.Join(all, "; ")
}

// unsigned says why mail may not leave: a key that should sign by now cannot be read, and
// no other signs. Where no key is broken, mail leaves unsigned before the first signs.
func unsigned(keys []*dkim.Key, broken []brokenKey, now time.Time) error {
	if len(dkim.At(keys, now)) > 0 {
		return nil
	}
	var all []error
	for _, b := range broken {
		if !b.kept && !b.From.After(now) {
			all = append(all, b.err)
		}
	}
	return errors.Join(all...)
}

// keyFiles are the versions of the files in which a channel has keys. One that cannot be
// opened has none.
func keyFiles(c *registry.Channel) []version {
	files := make([]version, len(c.DKIM))
	for i := range c.DKIM {
		if file, err := os.Open(c.DKIM[i].KeyFile); err == nil { // of one in the environment there is none
			if info, err := file.Stat(); err == nil {
				files[i] = version{info.ModTime(), info.Size()}
			}
			_ = file.Close() // it was only looked at
		}
	}
	return files
}

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
		if !out.keys.look(channel, o.captured.keys, o.records.seen) {
			continue
		}
		o.tellBroken(channel, out.keys.broken)
		if len(out.keys.broken) == 0 {
			o.logger.Info("DKIM keys were read anew from changed files", "channel", channel.Service+"/"+channel.Name)
		}
	}
}

// tellBroken logs keys that cannot be read.
func (o *outlets) tellBroken(c *registry.Channel, broken []brokenKey) {
	for _, b := range broken {
		o.logger.Error("a DKIM key cannot be used", "channel", c.Service+"/"+c.Name, "selector", b.Selector, "domain", b.Domain, "file", b.KeyFile, "signs_as_before", b.kept, "error", b.err)
	}
}
