package dkimkeys

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// Read is a key of a channel, or the reason why it cannot be read.
type Read struct {
	Key *dkim.Key
	Err error
}

// ReadAll reads the keys of a channel, in their order.
func ReadAll(c *catalog.Channel) (all []Read) {
	for i := range c.DKIM {
		key, err := ReadOne(c, &c.DKIM[i])
		if err != nil {
			err = fanfare.Below(fmt.Sprintf("/channels/%s/dkim/%d", c.Name, i), err)
		}
		all = append(all, Read{key, err})
	}
	return all
}

// ReadOne reads a key of a channel.
func ReadOne(c *catalog.Channel, k *catalog.DKIMKey) (*dkim.Key, error) {
	text, err := c.KeyText(k)
	if err != nil {
		return nil, err
	}
	private, err := dkim.ParsePrivate([]byte(text))
	if err != nil {
		return nil, err
	}
	return &dkim.Key{Domain: k.Domain, Selector: k.Selector, From: k.From, Private: private}, nil
}

// Keyring contains the keys of a channel. They change while mail is written: when the channel is
// configured with other keys, when a file changes, and when the record of a key is published in
// the DNS. The method All is safe for concurrent use; for the other methods, the caller must
// hold a lock.
type Keyring struct {
	keys   atomic.Pointer[[]*dkim.Key]
	files  []Version // of the files that were read last
	broken []Broken
}

// Version identifies the content of a file. The zero Version is a file that cannot be
// opened.
type Version struct {
	modified  time.Time
	sizeBytes int64
}

// Broken is a key that cannot be read now.
type Broken struct {
	catalog.DKIMKey
	Err  error
	Kept bool // the previously loaded key still signs
}

// All returns the active keys.
func (k *Keyring) All() []*dkim.Key {
	if keys := k.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

// Broken returns the keys that cannot be read now.
func (k *Keyring) Broken() []Broken { return k.broken }

// Merge returns the usable keys of a channel, given the keys that were just read: if a key can no
// longer be read, the previously loaded key stays. published reports whether the record of a key
// was seen
// in the DNS.
func (k *Keyring) Merge(c *catalog.Channel, read []Read, published func(*dkim.Key) bool) (keys []*dkim.Key, broken []Broken) {
	for i, one := range read {
		named := &c.DKIM[i]
		if one.Err != nil {
			one.Key = k.before(named)
			broken = append(broken, Broken{*named, one.Err, one.Key != nil})
		}
		if one.Key != nil {
			one.Key.Waits = named.WaitForDNS && !published(one.Key)
			keys = append(keys, one.Key)
		}
	}
	return keys, broken
}

// before returns the previously loaded key, or nil if there is none.
func (k *Keyring) before(named *catalog.DKIMKey) *dkim.Key {
	for _, old := range k.All() {
		if old.Domain == named.Domain && old.Selector == named.Selector {
			return &dkim.Key{Domain: named.Domain, Selector: named.Selector, From: named.From, Private: old.Private}
		}
	}
	return nil
}

// Set activates keys that were read from the given versions of the files.
func (k *Keyring) Set(keys []*dkim.Key, broken []Broken, files []Version) {
	k.keys.Store(&keys)
	k.files, k.broken = files, broken
}

// Publish activates the keys whose record is now published, and reports whether there are any.
func (k *Keyring) Publish(published func(*dkim.Key) bool) bool {
	keys := slices.Clone(k.All())
	found := false
	for i, key := range keys {
		if key.Waits && published(key) {
			keys[i] = &dkim.Key{Domain: key.Domain, Selector: key.Selector, From: key.From, Private: key.Private}
			found = true
		}
	}
	if found {
		k.keys.Store(&keys)
	}
	return found
}

// Reload reads the keys of a channel again if a file has changed or a key is broken, because the
// cause may not be visible in the version of a file. It reports whether the keys or the reasons
// of broken
// keys have changed.
func (k *Keyring) Reload(c *catalog.Channel, read func(*catalog.Channel) []Read, published func(*dkim.Key) bool) (changed bool) {
	files := Versions(c)
	if slices.Equal(files, k.files) && len(k.broken) == 0 {
		return false
	}
	keys, broken := k.Merge(c, read(c), published)
	if slices.Equal(files, k.files) && reasons(broken) == reasons(k.broken) {
		return false
	}
	k.Set(keys, broken, files)
	return true
}

func reasons(broken []Broken) string {
	var all []string
	for _, b := range broken {
		all = append(all, b.Err.Error())
	}
	return strings.Join(all, "; ")
}

// Unsigned returns why mail must not be sent: a key that should sign by now cannot be read, and
// no other key signs. It returns nil if no key is broken; mail is sent unsigned until the first
// key signs.
func Unsigned(keys []*dkim.Key, broken []Broken, now time.Time) error {
	if len(dkim.At(keys, now)) > 0 {
		return nil
	}
	var all []error
	for _, b := range broken {
		if !b.Kept && !b.From.After(now) {
			all = append(all, b.Err)
		}
	}
	return errors.Join(all...)
}

// Versions returns the versions of the key files of a channel. A key from the environment has
// the zero Version.
func Versions(c *catalog.Channel) []Version {
	files := make([]Version, len(c.DKIM))
	for i := range c.DKIM {
		if file, err := os.Open(c.DKIM[i].KeyFile); err == nil {
			if info, err := file.Stat(); err == nil {
				files[i] = Version{info.ModTime(), info.Size()}
			}
			_ = file.Close() // nothing was written
		}
	}
	return files
}
