package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"fanfare.dev/fanfare/internal/mail/signedlink"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/datadir"
)

// The files of the data directory with keys of the server's own. They are made
// at the first start and never changed by itself: links in mails of years ago
// stay good, a suppressed address stays suppressed, and a receiver of webhooks goes
// on to believe them.
const (
	linkKeyFile        = "link.key"
	suppressionKeyFile = "suppression.key"
	webhookKeyFile     = "webhook.key"
)

// An ownKey is one of them. One that is new is in memory alone until keep: what
// it is to be used with may need the one that is missing.
type ownKey struct {
	path  string
	bytes []byte
	made  bool
}

// readKey reads a key, or makes one where there is no file.
func readKey(dir, name string) (k ownKey, err error) {
	k.path = filepath.Join(dir, name)
	k.bytes, err = os.ReadFile(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		k.bytes, k.made = make([]byte, 32), true
		_, err = rand.Read(k.bytes)
	}
	if err == nil && len(k.bytes) < signedlink.MinKeyBytes {
		err = fmt.Errorf("%s has %d bytes, at least %d are needed", k.path, len(k.bytes), signedlink.MinKeyBytes)
	}
	return k, err
}

// keep writes a key that was made.
func (k *ownKey) keep() error {
	if !k.made {
		return nil
	}
	return datadir.WriteFile(k.path, k.bytes)
}

// ownKeys are all of them.
type ownKeys struct{ links, suppression, webhooks ownKey }

func readKeys(dir string) (k ownKeys, err error) {
	if k.links, err = readKey(dir, linkKeyFile); err != nil {
		return k, err
	}
	if k.suppression, err = readKey(dir, suppressionKeyFile); err != nil {
		return k, err
	}
	k.webhooks, err = readKey(dir, webhookKeyFile)
	return k, err
}

func (k *ownKeys) keep() error {
	return errors.Join(k.links.keep(), k.suppression.keep(), k.webhooks.keep())
}

// check refuses to begin with a new key beside what only the old one recognises:
// addresses that must not be written to, where mails with links may have left the
// links in them, and what receivers verify the channels with that name no secret.
func (k *ownKeys) check(suppressed int, linked bool, signing int) error {
	if k.suppression.made && suppressed > 0 {
		return k.suppression.missing(fmt.Sprintf("%d suppressed addresses cannot be recognised without it", suppressed), "nobody is suppressed any more then")
	}
	if k.links.made && linked {
		return k.links.missing("the links to unsubscribe in mails that were sent cannot be recognised without it", "the links in mails of before end nothing any more then")
	}
	if k.webhooks.made && signing > 0 {
		return k.webhooks.missing(fmt.Sprintf("receivers of %d channels would believe nothing any more", signing), "every receiver needs another secret then (fanfare secret)")
	}
	return nil
}

func (k *ownKey) missing(why, price string) error {
	dir, name := filepath.Split(k.path)
	return &fanfare.Error{Code: fanfare.Conflict, Message: fmt.Sprintf("%s is missing in %s: %s", name, filepath.Clean(dir), why),
		Hint: fmt.Sprintf("copy %[1]s, %[2]s and %[5]s from the data directory that was used with this database, or out of a backup (tar xf BACKUP %[1]s %[2]s %[5]s); where it is lost, make another (head -c 32 /dev/urandom > %[3]s): %[4]s",
			linkKeyFile, suppressionKeyFile, name, price, webhookKeyFile)}
}
