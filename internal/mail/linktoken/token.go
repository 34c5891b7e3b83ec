// Package linktoken creates encrypted tokens for links and forms. A token has a purpose and an
// expiry, and contains bytes that others can neither read nor change. It can therefore contain
// an address, and nothing needs to be stored until it is used.
//
// A token can be used several times until it expires, so the action that it permits must be
// idempotent.
package linktoken

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// A Purpose is the purpose of a token. A token is invalid for any other purpose.
type Purpose byte

// The errors of Open. They do not reveal why a token is invalid.
var (
	ErrForeign = errors.New("this token was not issued by this server or is damaged")
	ErrExpired = errors.New("this token has expired")
)

const (
	version = 1
	// MaxPayloadBytes keeps a URL with a token short enough for mail programs and browsers.
	MaxPayloadBytes = 1200

	timeBytes  = 8
	nonceBytes = 12
	tagBytes   = 16
)

// A Key seals and opens tokens. It is safe for concurrent use.
type Key struct{ aead cipher.AEAD }

// New derives a key from a secret, which may also be used for other purposes.
func New(secret []byte) (*Key, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "fanfare pass 1", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &Key{aead}, nil
}

// Seal returns a token of characters that a URL does not escape. The payload has at most
// MaxPayloadBytes.
func (k *Key) Seal(purpose Purpose, until time.Time, payload []byte) (string, error) {
	if len(payload) > MaxPayloadBytes {
		return "", errors.New("the content is too large for a token")
	}
	plain := binary.BigEndian.AppendUint64(make([]byte, 0, timeBytes+len(payload)), uint64(until.Unix()))
	plain = append(plain, payload...)
	sealed := k.aead.Seal([]byte{version}, nil, plain, []byte{version, byte(purpose)}) //nolint:gosec // the nonce is random, and made by Seal
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns the payload of a token. It also returns it with ErrExpired.
func (k *Key) Open(purpose Purpose, pass string, now time.Time) ([]byte, error) {
	if len(pass) > base64.RawURLEncoding.EncodedLen(1+nonceBytes+timeBytes+MaxPayloadBytes+tagBytes) {
		return nil, ErrForeign
	}
	for i := range len(pass) { // the decoder would skip line ends, so that one token would have many spellings
		if pass[i] < ' ' {
			return nil, ErrForeign
		}
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(pass)
	if err != nil || len(sealed) < 1 || sealed[0] != version {
		return nil, ErrForeign
	}
	plain, err := k.aead.Open(nil, nil, sealed[1:], []byte{version, byte(purpose)})
	if err != nil || len(plain) < timeBytes {
		return nil, ErrForeign
	}
	if until := int64(binary.BigEndian.Uint64(plain)); now.Unix() > until {
		return plain[timeBytes:], ErrExpired
	}
	return plain[timeBytes:], nil
}
