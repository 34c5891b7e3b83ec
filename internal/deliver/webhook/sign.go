package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// A Secret is what requests are signed with. Its text is whsec_ and base64.
type Secret []byte

// Bounds of secrets. The sizes are those of the specification.
const (
	secretPrefix   = "whsec_"
	minSecretBytes = 24
	maxSecretBytes = 64
	maxSecrets     = 4
)

// ParseSecrets reads secrets with space or lines between them, the newest first.
// The error does not show them.
func ParseSecrets(text string) ([]Secret, error) {
	all := strings.Fields(text)
	wrong := func(format string, args ...any) ([]Secret, error) {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secret", Message: fmt.Sprintf(format, args...),
			Hint: "a secret is whsec_ and 24 to 64 random bytes in base64: echo whsec_$(head -c 32 /dev/urandom | base64)"}
	}
	if len(all) == 0 || len(all) > maxSecrets {
		return wrong("%d secrets, use 1 to %d", len(all), maxSecrets)
	}
	secrets := make([]Secret, len(all))
	for i, one := range all {
		encoded, marked := strings.CutPrefix(one, secretPrefix)
		secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !marked || err != nil || len(secret) < minSecretBytes || len(secret) > maxSecretBytes {
			return wrong("secret %d of %d is none", i+1, len(all))
		}
		secrets[i] = secret
	}
	return secrets, nil
}

// Text is the secret as libraries of Standard Webhooks take it.
func (s Secret) Text() string { return secretPrefix + base64.StdEncoding.EncodeToString(s) }

// For derives the secret of one receiver, a URL in normal form, from that of the
// channel: who knows their own cannot sign what another receiver would believe.
func (s Secret) For(service, receiver string) Secret {
	mac := hmac.New(sha256.New, s)
	mac.Write([]byte("fanfare webhook receiver\x00" + service + "\x00" + receiver))
	return mac.Sum(nil)
}

// sign returns the signatures of a request by all secrets, with a space between them:
// while a secret is being changed, a receiver knows one of them.
func sign(secrets []Secret, service, receiver, id string, unix int64, body []byte) string {
	var signatures []byte
	var number [20]byte
	for i, secret := range secrets {
		mac := hmac.New(sha256.New, secret.For(service, receiver))
		mac.Write([]byte(id))
		mac.Write([]byte{'.'})
		mac.Write(strconv.AppendInt(number[:0], unix, 10))
		mac.Write([]byte{'.'})
		mac.Write(body)
		if i > 0 {
			signatures = append(signatures, ' ')
		}
		signatures = base64.StdEncoding.AppendEncode(append(signatures, "v1,"...), mac.Sum(nil))
	}
	return string(signatures)
}
