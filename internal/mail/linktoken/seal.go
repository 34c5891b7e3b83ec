// Package seal seals what a link or a form grants: a pass says for what it is, until
// when it is good, and carries some bytes that nobody can read or change. So an
// address may stand in one, and nothing has to be kept until somebody uses it.
//
// It keeps nothing. A pass can be shown again as long as it is good: what it grants
// must be the same when it is done twice.
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

// A Purpose is what a pass is for. One for another purpose is as good as none.
type Purpose byte

// The errors of Open. They do not say what is wrong with a pass that is none.
var (
	ErrForeign = errors.New("this is no pass of ours, or it is damaged")
	ErrExpired = errors.New("this pass is not good any more")
)

const (
	version = 1
	// MaxPayloadBytes keeps an address with a pass in it below what programs for
	// mail and browsers take.
	MaxPayloadBytes = 1200

	timeBytes  = 8
	nonceBytes = 12
	tagBytes   = 16
)

// A Key seals and opens. It is safe for concurrent use.
type Key struct{ aead cipher.AEAD }

// New returns the key that follows from a secret, which may be used for other
// things too.
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

// Seal makes a token of characters that a URL does not escape. The payload may have
// MaxPayloadBytes at most.
func (k *Key) Seal(purpose Purpose, until time.Time, payload []byte) (string, error) {
	if len(payload) > MaxPayloadBytes {
		return "", errors.New("more than a pass carries")
	}
	plain := binary.BigEndian.AppendUint64(make([]byte, 0, timeBytes+len(payload)), uint64(until.Unix()))
	plain = append(plain, payload...)
	sealed := k.aead.Seal([]byte{version}, nil, plain, []byte{version, byte(purpose)}) //nolint:gosec // the nonce is random, and made by Seal
	return base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Open returns what is in a pass. With ErrExpired it returns that too.
func (k *Key) Open(purpose Purpose, pass string, now time.Time) ([]byte, error) {
	if len(pass) > base64.RawURLEncoding.EncodedLen(1+nonceBytes+timeBytes+MaxPayloadBytes+tagBytes) {
		return nil, ErrForeign
	}
	for i := range len(pass) { // the decoder would skip line ends, and one pass have many spellings
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
