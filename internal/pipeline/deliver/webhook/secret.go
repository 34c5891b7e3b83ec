package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// A Secret signs by HMAC-SHA-256, the scheme v1. Its text is whsec_ and base64.
type Secret []byte

// Bounds of secrets. The sizes are those of the specification.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
)

var _ Key = Secret(nil)

// Text is the secret: the receiver has the same.
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

// derive makes the 32 bytes that a receiver's key is made of.
func derive(of []byte, use, service, receiver string) []byte {
	mac := hmac.New(sha256.New, of)
	mac.Write([]byte(use + "\x00" + service + "\x00" + receiver))
	return mac.Sum(nil)
}
