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

// signatureAge is how far the timestamp of a request may be from now.
const signatureAge = 5 * time.Minute

// A verifier is one of what signatures are held against: a secret or a public key.
type verificationKey struct {
	scheme string // of its signatures
	secret []byte
	public ed25519.PublicKey
}

// parseKeys reads secrets and public keys of Standard Webhooks: base64, behind
// "whsec_" and "whpk_".
func parseKeys(texts []string) ([]verificationKey, error) {
	var all []verificationKey
	for _, text := range texts {
		encoded, isPublic := strings.CutPrefix(text, "whpk_")
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(encoded, "whsec_"))
		if err != nil || len(raw) == 0 || isPublic && len(raw) != ed25519.PublicKeySize {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secrets", Message: "a secret is not base64, or a public key not one for Ed25519",
				Hint: "give what the receiver has, such as whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD or whpk_ and the base64 of 32 bytes"}
		}
		if isPublic {
			all = append(all, verificationKey{scheme: "v1a", public: raw})
		} else {
			all = append(all, verificationKey{scheme: "v1", secret: raw})
		}
	}
	return all, nil
}

// verifies reports whether a signature of its scheme is one of the text.
func (v *verificationKey) verifies(signature, text []byte) bool {
	if v.public != nil {
		return ed25519.Verify(v.public, text, signature)
	}
	sum := hmac.New(sha256.New, v.secret)
	sum.Write(text) // a hash never fails
	return hmac.Equal(signature, sum.Sum(nil))
}

// verify reports whether a request has a signature that one of them believes
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
