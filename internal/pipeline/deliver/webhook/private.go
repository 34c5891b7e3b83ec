package webhook

import (
	"crypto/ed25519"
	"encoding/base64"
	"slices"
)

// A PrivateKey signs by Ed25519, the scheme v1a: it is the seed of RFC 8032. As text
// it is whsk_ and base64, and what receivers get is whpk_ and their public key.
type PrivateKey []byte

const (
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"
)

var _ Key = PrivateKey(nil)

// privateKeyOf takes a seed, or a seed with its public key behind it, as other
// programs write key pairs.
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

// Text is the public key.
func (k PrivateKey) Text() string {
	return publicPrefix + base64.StdEncoding.EncodeToString(k.pair()[ed25519.SeedSize:])
}

// For derives the key of one receiver. What is signed does not name the receiver: with
// one key for all, each could hand on what it got.
func (k PrivateKey) For(service, receiver string) Key {
	return PrivateKey(derive(k, "fanfare webhook receiver ed25519", service, receiver))
}

func (k PrivateKey) appendSignature(dst, head, body []byte) []byte {
	signature := ed25519.Sign(k.pair(), slices.Concat(head, body))
	return base64.StdEncoding.AppendEncode(append(dst, "v1a,"...), signature)
}
