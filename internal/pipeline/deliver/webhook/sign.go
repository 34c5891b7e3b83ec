package webhook

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// A Key is what the requests of a channel are signed with, or those to one receiver:
// a Secret, which the receiver has as well, or a PrivateKey, of which it has the
// public part (Standard Webhooks 1.0, signature scheme).
type Key interface {
	// For derives the key for one receiver, a URL in normal form, from that of the
	// channel: who knows their own cannot sign what another receiver would believe,
	// nor hand on to it what was signed for them.
	For(service, receiver string) Key
	// Text is what the receiver verifies with, as libraries of Standard Webhooks take it.
	Text() string
	// appendSignature appends the signature of a text, in two parts.
	appendSignature(dst, head, body []byte) []byte
}

const maxKeys = 4

// ParseKeys reads keys with space or lines between them, the newest first. The error
// does not show them.
func ParseKeys(text string) ([]Key, error) {
	all := strings.Fields(text)
	wrong := func(format string, args ...any) ([]Key, error) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secret", Message: fmt.Sprintf(format, args...),
			Hint: "a secret is whsec_ and 24 to 64 random bytes in base64: echo whsec_$(head -c 32 /dev/urandom | base64); a private key for Ed25519 is whsk_ and 32: echo whsk_$(head -c 32 /dev/urandom | base64)"}
	}
	if len(all) == 0 || len(all) > maxKeys {
		return wrong("%d secrets, use 1 to %d", len(all), maxKeys)
	}
	keys := make([]Key, len(all))
	for i, one := range all {
		if keys[i] = parseKey(one); keys[i] == nil {
			return wrong("secret %d of %d is none", i+1, len(all))
		}
	}
	return keys, nil
}

// parseKey returns nil for what is no key.
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

// sign returns the signatures of a request by all keys, with a space between them:
// while a key is being changed, a receiver knows one of them.
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
