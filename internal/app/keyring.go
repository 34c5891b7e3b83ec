package app

import (
	"context"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/dkim"
	"fanfare.dev/fanfare/internal/registry"
)

// A keyring has the keys of a channel, which change while its mail is written: when
// the channel names others, and when a file has another one. What is not of keys is
// for who holds the lock of the outlets.
type keyring struct {
	keys  atomic.Pointer[[]*dkim.Key]
	files []version // of those that were read last
	fault string    // why what is in the files now is not in force; "" while it is
}

// all are those in force.
func (k *keyring) all() []*dkim.Key { return *k.keys.Load() }

// take puts keys in force that were read from files of these versions.
func (k *keyring) take(keys []*dkim.Key, files []version) {
	k.keys.Store(&keys)
	k.files, k.fault = files, ""
}

// look reads the keys of a channel anew if a file is another one than before. Where
// they cannot be read, those before stay in force; the error is returned once, and it
// is tried again at the next look: what was in the way need not show in a version.
func (k *keyring) look(c *registry.Channel, read func(*registry.Channel) ([]*dkim.Key, error)) (anew bool, err error) {
	files := keyFiles(c)
	if slices.Equal(files, k.files) && k.fault == "" {
		return false, nil
	}
	keys, err := read(c)
	if err != nil {
		if why := err.Error(); why != k.fault {
			k.fault = why
			return false, err
		}
		return false, nil
	}
	k.take(keys, files)
	return true, nil
}

// keyFiles are the versions of the files in which a channel has keys.
func keyFiles(c *registry.Channel) []version {
	files := make([]version, len(c.DKIM))
	for i := range c.DKIM {
		if info, err := os.Stat(c.DKIM[i].KeyFile); err == nil { // of one in the environment there is none
			files[i] = version{info.ModTime(), info.Size()}
		}
	}
	return files
}

// keysLook is how often the files of keys are looked at.
const keysLook = 2 * time.Second

// rereadKeys puts keys in force whose files have changed, and settings that could
// not be before, until ctx ends.
func (o *outlets) rereadKeys(ctx context.Context) {
	for rest(ctx, keysLook) == nil {
		o.lookAtKeys()
		o.mendFaulty(ctx)
		o.serveClosed(ctx)
	}
}

func (o *outlets) lookAtKeys() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, channel := range o.registry.Channels() {
		out := o.open[channel.Number]
		if out == nil || out.fault != "" || len(out.keys.all()) == 0 || len(channel.DKIM) == 0 {
			continue
		}
		anew, err := out.keys.look(channel, o.captured.keys)
		switch {
		case err != nil:
			o.logger.Error("a file has no DKIM key that can be used; the channel signs with the keys from before", "channel", channel.Service+"/"+channel.Name, "error", err)
		case anew:
			o.logger.Info("DKIM keys were read anew from changed files", "channel", channel.Service+"/"+channel.Name)
		}
	}
}
