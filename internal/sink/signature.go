package sink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	fanfare "fanfare.dev/fanfare"
)

// signatureAge is how far the timestamp of a request may be from now.
const signatureAge = 5 * time.Minute

// readSecrets reads secrets of Standard Webhooks: base64, behind "whsec_".
func readSecrets(texts []string) ([][]byte, error) {
	var secrets [][]byte
	for _, text := range texts {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(secret) == 0 {
			return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/secrets", Message: "a secret is not base64", Hint: "give what the channel has, such as whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"}
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}

// verify reports whether a request is signed with one of the secrets (Standard
// Webhooks 1.0: HMAC-SHA256 of "id.timestamp.body").
func verify(secrets [][]byte, header http.Header, body []byte) bool {
	id, at := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := time.Since(time.Unix(seconds, 0)); err != nil || id == "" || age.Abs() > signatureAge {
		return false
	}
	for _, secret := range secrets {
		sum := hmac.New(sha256.New, secret)
		sum.Write([]byte(id + "." + at + ".")) // a hash never fails
		sum.Write(body)
		want := sum.Sum(nil)
		for signature := range strings.FieldsSeq(header.Get("Webhook-Signature")) {
			text, isV1 := strings.CutPrefix(signature, "v1,")
			given, err := base64.StdEncoding.DecodeString(text)
			if isV1 && err == nil && hmac.Equal(given, want) {
				return true
			}
		}
	}
	return false
}
