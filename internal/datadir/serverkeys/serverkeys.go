// Package serverkeys holds the keys of the server itself: they sign links, recognise suppressed
// addresses, sign webhooks of channels that name no secret, and seal secrets that are stored.
//
// State. The files link.key, suppression.key, webhook.key and seal.key of the data directory. The first
// start makes them, and nothing changes the first three: links in mails of years ago stay valid, and a
// suppressed address stays suppressed. A rotation replaces seal.key.
//
// In a cluster, the database has the keys of all nodes, encrypted with the cluster key. Each node that leads copies them to
// its data directory, for backups.
//
// Failure. A missing key is made anew only if nothing depends on the old one.
//
// The server opens the keys at its start.
package serverkeys

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
	"fanfare.dev/fanfare/internal/mail/signedlink"
)

const (
	linkFile        = "link.key"
	suppressionFile = "suppression.key"
	webhookFile     = "webhook.key"
	sealingFile     = "seal.key"
)

// Key is a key. A new one is in memory alone until Save.
type Key struct {
	Bytes []byte
	path  string
	made  bool // nobody has it yet
	saved bool // in its file

	rotates bool // its bytes can change
}

// Keys are the keys of a server.
type Keys struct{ Links, Suppression, Webhooks, Sealing Key }

// Read reads the keys of a data directory, and makes those without a file.
func Read(dir string) (k Keys, err error) {
	if k.Links, err = read(dir, linkFile); err != nil {
		return k, err
	}
	if k.Suppression, err = read(dir, suppressionFile); err != nil {
		return k, err
	}
	if k.Webhooks, err = read(dir, webhookFile); err != nil {
		return k, err
	}
	k.Sealing, err = read(dir, sealingFile)
	k.Sealing.rotates = true
	if err == nil && len(k.Sealing.Bytes)%sealingBytes != 0 {
		err = fmt.Errorf("%s has %d bytes, which is not a multiple of %d", k.Sealing.path, len(k.Sealing.Bytes), sealingBytes)
	}
	return k, err
}

func read(dir, name string) (k Key, err error) {
	k.path = filepath.Join(dir, name)
	k.Bytes, err = os.ReadFile(k.path)
	k.saved = err == nil
	if errors.Is(err, fs.ErrNotExist) {
		k.Bytes, k.made = make([]byte, 32), true
		_, err = rand.Read(k.Bytes)
	}
	if err == nil && len(k.Bytes) < signedlink.MinKeyBytes {
		err = fmt.Errorf("%s has %d bytes; at least %d are required", k.path, len(k.Bytes), signedlink.MinKeyBytes)
	}
	return k, err
}

// Save writes the keys that have no file.
func (k *Keys) Save() error {
	return errors.Join(k.Links.save(), k.Suppression.save(), k.Webhooks.save(), k.Sealing.save())
}

func (k *Key) save() error {
	if k.saved {
		return nil
	}
	return durablefile.Write(k.path, k.Bytes)
}

// Shared is where the nodes of a cluster keep the keys.
type Shared interface {
	SealedKeys(ctx context.Context) (map[string][]byte, error)
	AddSealedKey(ctx context.Context, name string, sealed []byte) error
	ReplaceSealedKey(ctx context.Context, name string, sealed []byte) error
}

// Sealer encrypts the keys in Shared.
type Sealer interface {
	Seal(name string, key []byte) []byte
	Open(name string, sealed []byte) ([]byte, error)
}

// Adopt takes over the keys of the cluster. It refuses a data directory that has others.
func (k *Keys) Adopt(ctx context.Context, shared Shared, sealer Sealer) error {
	sealed, err := shared.SealedKeys(ctx)
	if err != nil {
		return err
	}
	for _, key := range k.all() {
		name := filepath.Base(key.path)
		if sealed[name] == nil {
			continue
		}
		bytes, err := sealer.Open(name, sealed[name])
		if err != nil {
			return err
		}
		if key.rotates {
			key.saved = key.saved && hmac.Equal(bytes, key.Bytes)
		} else if key.saved && !hmac.Equal(bytes, key.Bytes) {
			return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("the key in %s differs from that of the other nodes", key.path),
				Hint: "use an empty data_dir for a new node; the keys of the cluster are in the database"}
		}
		key.Bytes, key.made = bytes, false
	}
	return nil
}

// Share gives the other nodes the keys that they do not have yet.
func (k *Keys) Share(ctx context.Context, shared Shared, sealer Sealer) error {
	for _, key := range k.all() {
		name := filepath.Base(key.path)
		if err := shared.AddSealedKey(ctx, name, sealer.Seal(name, key.Bytes)); err != nil {
			return err
		}
	}
	return nil
}

func (k *Keys) all() []*Key { return []*Key{&k.Links, &k.Suppression, &k.Webhooks, &k.Sealing} }

// Check refuses a new key if something depends on the old one: suppressed addresses; links in
// mails that may have been sent; receivers that verify channels without a secret of their own;
// sealed secrets.
func (k *Keys) Check(suppressed int, linked bool, signedChannels, sealed int) error {
	if k.Suppression.made && suppressed > 0 {
		return k.Suppression.missing(fmt.Sprintf("without it, %d suppressed addresses cannot be recognized", suppressed), "after that, none of these addresses are suppressed")
	}
	if k.Links.made && linked {
		return k.Links.missing("without it, unsubscribe links in earlier messages cannot be verified", "after that, links in earlier messages no longer work")
	}
	if k.Webhooks.made && signedChannels > 0 {
		return k.Webhooks.missing(fmt.Sprintf("without it, receivers of %d channels would refuse all requests", signedChannels), "after that, every receiver needs a new secret (fanfare secret)")
	}
	if k.Sealing.made && sealed > 0 {
		return k.Sealing.missing(fmt.Sprintf("without it, %d keys of clients of GOV.UK Notify cannot be verified", sealed), "after that, each of these keys must be registered again")
	}
	return nil
}

func (k *Key) missing(why, consequence string) error {
	dir, name := filepath.Split(k.path)
	return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%s is missing from %s: %s", name, filepath.Clean(dir), why),
		Hint: fmt.Sprintf("copy %[1]s, %[2]s, %[5]s and %[6]s from the data directory that was used with this database, or extract them from a backup (tar xf BACKUP %[1]s %[2]s %[5]s %[6]s); if the key is lost, create a new one (head -c 32 /dev/urandom > %[3]s): %[4]s",
			linkFile, suppressionFile, name, consequence, webhookFile, sealingFile)}
}
