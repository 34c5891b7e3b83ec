package state

import (
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
)

// A keyring has all keys that are not deleted, by the hashes of their secrets. Any number of
// goroutines may read; the writer changes it.
type keyring struct {
	mu     sync.RWMutex
	hashes map[secretHash]*storedKey // of the secrets that may be good
	keys   map[uint32]*storedKey     // by number
	notify map[string][]*storedKey   // keys for clients of GOV.UK Notify by service, revoked ones too
	last   uint32                    // highest number ever used
}

// secretHash is the SHA-256 of a secret's text.
type secretHash [sha256.Size]byte

// A storedKey is a key in memory. It is replaced on a change, except for used and oldUsed.
type storedKey struct {
	number uint32
	name   string
	svc    string
	keyBody
	secret  []byte        // of a Notify key; nil if it cannot be opened
	used    *atomic.Int64 // Unix seconds of the last use, in whole minutes; 0: not since the start
	oldUsed *atomic.Int64 // the same for the previous secret; lost at a restart
}

// useInterval is the precision of the time of the last use. A key in constant use is stored once
// per interval.
const useInterval = 60

func (k *storedKey) id() string { return keyID(k.number) }

func (k *storedKey) principal() catalog.Principal {
	return catalog.Principal{KeyID: k.id(), Name: k.name, Owner: k.Owner, Service: k.svc, Scopes: k.scopes()}
}

// usable reports whether the key is valid at a time.
func (k *storedKey) usable(now time.Time) bool {
	return !k.Disabled && k.RevokedAt.IsZero() && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// accepts reports whether the key still accepts the secret with this hash.
func (k *storedKey) accepts(hash secretHash, now time.Time) bool {
	return k.usable(now) && (hash == secretHash(k.Hash) || now.Before(k.OldUntil))
}

func (k *storedKey) lastUsed() time.Time {
	if at := minuteOf(k.used); !at.IsZero() {
		return at
	}
	return k.LastUsed
}

// minuteOf returns the time of a minute; 0 is the zero time.
func minuteOf(used *atomic.Int64) time.Time {
	if at := used.Load(); at != 0 {
		return time.Unix(at, 0).UTC()
	}
	return time.Time{}
}

// set replaces the key with the number of k.
func (r *keyring) set(k *storedKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil {
		r.keys, r.hashes, r.notify = map[uint32]*storedKey{}, map[secretHash]*storedKey{}, map[string][]*storedKey{}
	}
	r.forget(k.number)
	r.keys[k.number] = k
	r.last = max(r.last, k.number)
	if k.Notify != "" {
		r.notify[k.svc] = append(slices.Clone(r.notify[k.svc]), k)
		return
	}
	r.hashes[secretHash(k.Hash)] = k
	if len(k.OldHash) == sha256.Size {
		r.hashes[secretHash(k.OldHash)] = k
	}
}

// remove deletes the key. Its number is not reused.
func (r *keyring) remove(number uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(number)
	r.last = max(r.last, number)
}

func (r *keyring) forget(number uint32) {
	if old := r.keys[number]; old != nil {
		delete(r.keys, number)
		if old.Notify != "" {
			r.notify[old.svc] = slices.DeleteFunc(slices.Clone(r.notify[old.svc]), func(k *storedKey) bool { return k.number == number })
			return
		}
		delete(r.hashes, secretHash(old.Hash))
		if len(old.OldHash) == sha256.Size {
			delete(r.hashes, secretHash(old.OldHash))
		}
	}
}

func (r *keyring) get(number uint32) *storedKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[number]
}

func (r *keyring) len() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.keys)
}

// list returns the keys of a service, or with "" all, by number.
func (r *keyring) list(service string) []*storedKey {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var found []*storedKey
	for _, k := range r.keys {
		if service == "" || k.svc == service {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b *storedKey) int { return cmp.Compare(a.number, b.number) })
	return found
}

// Authenticate returns the principal of a secret. It returns false for a key that is disabled,
// expired or deleted.
//
// The map is keyed by the SHA-256 of the secret. The duration of a look-up can therefore reveal
// only facts about the hash of a guess, which an attacker cannot choose. The secret itself, 32
// random bytes, is never compared.
func (r *Catalog) Authenticate(secret string) (catalog.Principal, bool) {
	if !strings.HasPrefix(secret, secretPrefix) {
		return catalog.Principal{}, false
	}
	hash := secretHash(sha256.Sum256([]byte(secret)))
	r.keyring.mu.RLock()
	k := r.keyring.hashes[hash]
	r.keyring.mu.RUnlock()
	now := r.opt.Apply.Now()
	if k == nil || !k.accepts(hash, now) {
		return catalog.Principal{}, false
	}
	minute := now.Unix() / useInterval * useInterval
	if k.used.Load() < minute {
		k.used.Store(minute)
	}
	if hash != secretHash(k.Hash) && k.oldUsed.Load() < minute {
		k.oldUsed.Store(minute)
	}
	return k.principal(), true
}
