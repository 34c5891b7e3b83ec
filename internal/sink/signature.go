package sink

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// signatureAge is the maximum difference between the timestamp of a request and now.
const signatureAge = 5 * time.Minute

// A verificationKey is a secret or a public key.
type verificationKey struct {
	scheme string // of its signatures
	secret []byte
	public ed25519.PublicKey
}

// parseKeys parses secrets and public keys of Standard Webhooks: base64 after "whsec_" or
// "whpk_".
func parseKeys(texts []string) ([]verificationKey, error) {
	var all []verificationKey
	for _, text := range texts {
		encoded, isPublic := strings.CutPrefix(text, "whpk_")
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(encoded, "whsec_"))
		if err != nil || len(raw) == 0 || isPublic && len(raw) != ed25519.PublicKeySize {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secrets", Message: "a secret is not valid base64, or a public key is not an Ed25519 key",
				Hint: "use the receiver's key: whsec_ or whpk_ followed by base64, for example whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
		}
		if isPublic {
			all = append(all, verificationKey{scheme: "v1a", public: raw})
		} else {
			all = append(all, verificationKey{scheme: "v1", secret: raw})
		}
	}
	return all, nil
}

// verifies reports whether signature is a signature of text with this key.
func (v *verificationKey) verifies(signature, text []byte) bool {
	if v.public != nil {
		return ed25519.Verify(v.public, text, signature)
	}
	sum := hmac.New(sha256.New, v.secret)
	sum.Write(text) // a hash never fails
	return hmac.Equal(signature, sum.Sum(nil))
}

// verify reports whether a request has a signature that is valid for one of the keys
// (Standard Webhooks 1.0: of "id.timestamp.body").
func verify(verifiers []verificationKey, header http.Header, body []byte) bool {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || id == "" || age.Abs() > signatureAge {
		return false
	}
	text := slices.Concat([]byte(id+"."+at+"."), body)
	for one := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
		scheme, encoded, _ := strings.Cut(one, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		for i := range verifiers {
			if v := &verifiers[i]; v.scheme == scheme && v.verifies(signature, text) {
				return true
			}
		}
	}
	return false
}
