package serverkeys

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/durablefile"
)

// sealingBytes is the length of one sealing key. The file seal.key has the current key and, during a
// rotation, the previous one behind it.
const sealingBytes = 32

// A Vault encrypts secrets that the server must read again, such as those with which clients sign
// requests. It is safe for concurrent use.
type Vault struct {
	mu    sync.RWMutex
	key   Key
	share func(ctx context.Context, name string, key []byte) error // nil: the server is alone
}

// NewVault returns the vault of a key.
func NewVault(key Key) *Vault { return &Vault{key: key} }

// ShareWith stores the key with those of the other nodes after each rotation.
func (v *Vault) ShareWith(shared Shared, sealer Sealer) {
	v.share = func(ctx context.Context, name string, key []byte) error {
		return shared.ReplaceSealedKey(ctx, name, sealer.Seal(name, key))
	}
}

// Seal encrypts a secret. Open needs the same purpose, which is not secret.
func (v *Vault) Seal(secret []byte, purpose string) ([]byte, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	aead, err := sealingCipher(v.keys()[0])
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // it never fails
	return aead.Seal(nonce, nonce, secret, []byte(purpose)), nil
}

// errUnsealed is the error of a secret that was sealed with another key or for another purpose.
var errUnsealed = errors.New("the secret was sealed with another key")

// Open decrypts a secret.
func (v *Vault) Open(sealed []byte, purpose string) ([]byte, error) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, key := range v.keys() {
		aead, err := sealingCipher(key)
		if err != nil {
			return nil, err
		}
		if n := aead.NonceSize(); len(sealed) >= n {
			if secret, err := aead.Open(nil, sealed[:n], sealed[n:], []byte(purpose)); err == nil {
				return secret, nil
			}
		}
	}
	return nil, errUnsealed
}

// Rotate makes a new key, calls reseal, which seals all secrets again, and removes the previous key.
// After a crash in between, the file has both keys, and another rotation removes the old ones.
func (v *Vault) Rotate(ctx context.Context, reseal func() error) error {
	made := make([]byte, sealingBytes)
	_, _ = rand.Read(made) // it never fails
	v.mu.RLock()
	before := v.key.Bytes
	v.mu.RUnlock()
	if err := v.replace(ctx, slices.Concat(made, before)); err != nil {
		return err
	}
	if err := reseal(); err != nil {
		return err
	}
	return v.replace(ctx, made)
}

// replace stores and uses other keys.
func (v *Vault) replace(ctx context.Context, keys []byte) error {
	if v.share != nil {
		if err := v.share(ctx, filepath.Base(v.key.path), keys); err != nil {
			return err
		}
	}
	if err := durablefile.Write(v.key.path, keys); err != nil {
		return &fanfare.Error{Code: fanfare.Unavailable, Message: "the sealing key cannot be stored: " + err.Error(), Hint: "correct the problem, and rotate the key again"}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.key.Bytes = keys
	return nil
}

// keys lists the keys, the current one first.
func (v *Vault) keys() [][]byte { return slices.Collect(slices.Chunk(v.key.Bytes, sealingBytes)) }

func sealingCipher(key []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "fanfare sealed secrets", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
