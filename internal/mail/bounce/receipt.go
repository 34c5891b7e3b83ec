package bounce

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A ProviderReceipt is what a provider says over HTTP of one message and one recipient.
type ProviderReceipt struct {
	Message string    // the Message-ID, without < and >, or the id of the delivery
	At      time.Time // when it happened there
	Report  Report

	Token string // of a form whose signature does not cover the document; "" elsewhere
}

// A ReceiptForm is how a provider writes receipts, and vouches for them.
type ReceiptForm struct {
	Name string
	// Secrets reads what requests are signed with: some, with space between them, so
	// that one can be changed. The error does not show them.
	Secrets func(text string) ([][]byte, error)
	read    func(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error)
}

// Read verifies a request with any of the secrets and reads it. Unauthenticated:
// whoever sent it has none of them, or sent it too long ago. Invalid: it is none.
func (f *ReceiptForm) Read(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	r, err := f.read(secrets, header, body, now)
	if err != nil {
		return ProviderReceipt{}, err
	}
	r.finish(now)
	return r, nil
}

// ReceiptForms are those that are known.
func ReceiptForms() []ReceiptForm {
	return []ReceiptForm{
		{"standard", standardSecrets, readStandard},
		{"mailgun", plainSecrets, readMailgun},
	}
}

// The limits of a request.
const (
	maxReceiptSecrets = 4
	minReceiptSecret  = 16              // bytes
	receiptAge        = 5 * time.Minute // of a request whose signature covers the document; ahead, of all
)

func unsigned(hint string) error {
	return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the receipt is not signed with the secret of this channel", Hint: hint}
}

func outdated(hint string) error {
	return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the receipt was signed at another time than now", Hint: hint}
}

func noReceipt(pointer, message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
}

// secretsIn cuts a text into secrets, and reads each.
func secretsIn(text, hint string, read func(string) ([]byte, error)) ([][]byte, error) {
	all := strings.Fields(text)
	wrong := &fanfare.Error{Code: fanfare.Unavailable, Message: "what receipts are signed with cannot be read", Hint: hint}
	if len(all) == 0 || len(all) > maxReceiptSecrets {
		return nil, wrong
	}
	secrets := make([][]byte, len(all))
	for i, one := range all {
		secret, err := read(one)
		if err != nil || len(secret) < minReceiptSecret {
			return nil, wrong
		}
		secrets[i] = secret
	}
	return secrets, nil
}

// plainSecrets are taken as they are.
func plainSecrets(text string) ([][]byte, error) {
	return secretsIn(text, "put the signing key of the provider there, at least 16 bytes", func(s string) ([]byte, error) { return []byte(s), nil })
}

// standardSecrets are those of Standard Webhooks: base64 behind whsec_.
func standardSecrets(text string) ([][]byte, error) {
	return secretsIn(text, "a secret is whsec_ and 24 to 64 random bytes in base64", func(s string) ([]byte, error) {
		return base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
	})
}

// readStandard reads the form of Fanfare's own, signed as Standard Webhooks 1.0 says:
// HMAC-SHA-256 of id, timestamp and body, with dots between them.
func readStandard(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	const how = "sign it as Standard Webhooks says: webhook-id, webhook-timestamp, and v1, with the HMAC-SHA-256 of both and the body in webhook-signature"
	id, at := header("Webhook-Id"), header("Webhook-Timestamp")
	if id == "" || !signedBy(secrets, header("Webhook-Signature"), id+"."+at+".", body) {
		return ProviderReceipt{}, unsigned(how)
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > receiptAge {
		return ProviderReceipt{}, outdated("send it within five minutes, and sign it again when it is sent again")
	}
	return standardReceipt(body)
}

// signedBy reports whether one of the signatures is that of one of the secrets.
func signedBy(secrets [][]byte, signatures, before string, body []byte) bool {
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(before))
		mac.Write(body)
		want := mac.Sum(nil)
		for one := range strings.FieldsSeq(signatures) {
			text, isV1 := strings.CutPrefix(one, "v1,")
			given, err := base64.StdEncoding.DecodeString(text)
			if isV1 && err == nil && hmac.Equal(given, want) {
				found = true
			}
		}
	}
	return found
}

// finish fills in what follows from the others, and bounds all.
func (r *ProviderReceipt) finish(now time.Time) {
	r.Message = strings.Trim(strings.TrimSpace(r.Message), "<>")
	p := &r.Report
	p.Text, p.Relay, p.Recipient = oneLine(p.Text), oneLine(p.Relay), address(p.Recipient)
	p.Status = statusIn(p.Status)
	p.Code = cmp.Or(replyCode(p.Code), replyIn(p.Text))
	if (p.Outcome == Failed || p.Outcome == Delayed) && p.Class == "" {
		p.classify()
	}
	if r.At.After(now) || r.At.Before(now.AddDate(-1, 0, 0)) {
		r.At = now // whoever says so has no clock, or has said nothing
	}
}

// replyCode is a code of SMTP, or 0: providers have others of their own.
func replyCode(code int) int {
	if code < 400 || code > 555 {
		return 0
	}
	return code
}
