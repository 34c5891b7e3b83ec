package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// A Key signs the requests of a channel or of one receiver. It is a Secret, which the
// receiver has as well, or a PrivateKey, of which the receiver has the public key (Standard
// Webhooks 1.0, signature schemes).
type Key interface {
	// For derives the key of one receiver, whose URL is in normal form, from the key of the
	// channel. Receivers cannot sign for each other, nor pass on a request that was signed
	// for them.
	For(service, receiver string) Key
	// Text returns the key with which the receiver verifies, in the format of Standard
	// Webhooks.
	Text() string
	// appendSignature appends the signature of a text, which is given in two parts.
	appendSignature(dst, head, body []byte) []byte
}

const maxKeys = 4

// ParseKeys parses keys that are separated by white space, the newest first. Its errors do
// not show the keys.
func ParseKeys(text string) ([]Key, error) {
	all := strings.Fields(text)
	wrong := func(format string, args ...any) ([]Key, error) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secret", Message: fmt.Sprintf(format, args...),
			Hint: "each key is either whsec_ followed by 24 to 64 random bytes in Base64 (echo whsec_$(head -c 32 /dev/urandom | base64)), or an Ed25519 private key: whsk_ followed by 32 random bytes in Base64 (echo whsk_$(head -c 32 /dev/urandom | base64))"}
	}
	if len(all) == 0 || len(all) > maxKeys {
		return wrong("the secret has %d keys; 1 to %d are allowed", len(all), maxKeys)
	}
	keys := make([]Key, len(all))
	for i, one := range all {
		if keys[i] = parseKey(one); keys[i] == nil {
			return wrong("key %d of %d is not valid", i+1, len(all))
		}
	}
	return keys, nil
}

// parseKey returns nil if text is not a key.
func parseKey(text string) Key {
	kind, encoded, _ := strings.Cut(text, "_")
	raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
	case kind+"_" == secretPrefix && len(raw) >= minSecretBytes && len(raw) <= maxSecretBytes:
		return Secret(raw)
	case kind+"_" == privatePrefix:
		if key, ok := privateKeyOf(raw); ok {
			return key
		}
	}
	return nil
}

// sign returns the signatures of a request with all keys, separated by spaces: while a key
// is being replaced, a receiver knows only one of them.
func sign(keys []Key, service, receiver, id string, unix int64, body []byte) string {
	head := strconv.AppendInt(slices.Concat([]byte(id), []byte{'.'}), unix, 10)
	head = append(head, '.')
	var signatures []byte
	for i, key := range keys {
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = key.For(service, receiver).appendSignature(signatures, head, body)
	}
	return string(signatures)
}

// A Secret signs with HMAC-SHA-256, scheme v1. Its text is whsec_ followed by base64.
type Secret []byte

// Sizes from the specification.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

var _ Key = Secret(nil)

// Text returns the secret, which the receiver has as well.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// For derives the secret of one receiver.
func (s Secret) For(service, receiver string) Key {
	return Secret(derive(s, "fanfare webhook receiver", service, receiver))
}

func (s Secret) appendSignature(dst, head, body []byte) []byte {
	mac := hmac.New(sha256.New, s)
	mac.Write(head) // a hash never fails
	mac.Write(body)
	return base64.StdEncoding.AppendEncode(append(dst, "v1,"...), mac.Sum(nil))
}

// derive returns the 32 bytes of a receiver's key.
func derive(of []byte, use, service, receiver string) []byte {
	mac := hmac.New(sha256.New, of)
	mac.Write([]byte(use + "\x00" + service + "\x00" + receiver))
	return mac.Sum(nil)
}

// A PrivateKey signs with Ed25519, scheme v1a: it is the seed of RFC 8032. Its text is
// whsk_ followed by base64, and receivers get whpk_ followed by the public key.
type PrivateKey []byte

const (
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"
)

var _ Key = PrivateKey(nil)

// privateKeyOf accepts a seed, or a seed followed by its public key, as other programs
// write key pairs.
func privateKeyOf(raw []byte) (key PrivateKey, ok bool) {
	switch len(raw) {
	case ed25519.SeedSize:
		return raw, true
	case ed25519.PrivateKeySize:
		key = raw[:ed25519.SeedSize]
		return key, slices.Equal(key.pair(), raw)
	}
	return nil, false
}

func (k PrivateKey) pair() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(k) }

// Text returns the public key.
func (k PrivateKey) Text() string {
	return publicPrefix + base64.StdEncoding.EncodeToString(k.pair()[ed25519.SeedSize:])
}

// For derives the key of one receiver. The signed text does not contain the receiver: with one
// key for all, a receiver could pass on a request to another.
func (k PrivateKey) For(service, receiver string) Key {
	return PrivateKey(derive(k, "fanfare webhook receiver ed25519", service, receiver))
}

func (k PrivateKey) appendSignature(dst, head, body []byte) []byte {
	signature := ed25519.Sign(k.pair(), slices.Concat(head, body))
	return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), signature)
}
