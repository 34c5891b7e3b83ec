package bounce

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A ProviderReceipt is a report of a provider, over HTTP, about one message and one recipient.
type ProviderReceipt struct {
	Message string    // the Message-ID, without < and >, or the id of the delivery
	At      time.Time // time set by the provider
	Report  Report

	Token string // set only if the signature does not cover the document
}

// A ReceiptForm is the format and signature of the receipts of a provider.
type ReceiptForm struct {
	Name string
	// Secrets parses the secrets that requests are signed with, separated by spaces, so that a secret can
	// be replaced. The error does not show them.
	Secrets func(text string) ([][]byte, error)
	read    func(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error)
}

// Read verifies a request with the secrets and parses it. The code of an error is Unauthenticated for a wrong
// signature or an old request, and Invalid for another document.
func (f *ReceiptForm) Read(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	r, err := f.read(secrets, header, body, now)
	if err != nil {
		return ProviderReceipt{}, err
	}
	r.finish(now)
	return r, nil
}

// ReceiptForms returns the known forms.
func ReceiptForms() []ReceiptForm {
	return []ReceiptForm{
		{"standard", standardSecrets, readStandard},
		{"mailgun", plainSecrets, readMailgun},
	}
}

// Limits of a request.
const (
	maxReceiptSecrets = 4
	minReceiptSecret  = 16              // bytes
	receiptAge        = 5 * time.Minute // maximum age of a request whose signature covers the document, and how far ahead any request may be
)

func unsigned(hint string) error {
	return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the receipt is not signed with the secret of this channel", Hint: hint}
}

func outdated(hint string) error {
	return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the signature timestamp of the receipt is too old or in the future", Hint: hint}
}

func noReceipt(pointer, message, hint string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: message, Hint: hint}
}

// secretsIn splits a text into secrets, and parses each.
func secretsIn(text, hint string, read func(string) ([]byte, error)) ([][]byte, error) {
	all := strings.Fields(text)
	wrong := &fanfare.Error{Code: fanfare.Unavailable, Message: "the receipt secret cannot be parsed", Hint: hint}
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

// plainSecrets returns secrets without decoding.
func plainSecrets(text string) ([][]byte, error) {
	return secretsIn(text, "set the secret to the provider's signing key; the key must have at least 16 bytes", func(s string) ([]byte, error) { return []byte(s), nil })
}

// standardSecrets decodes secrets of Standard Webhooks: base64 after whsec_.
func standardSecrets(text string) ([][]byte, error) {
	return secretsIn(text, "write each secret as whsec_ followed by 24 to 64 random bytes in Base64", func(s string) ([]byte, error) {
		return base64.StdEncoding.DecodeString(strings.TrimPrefix(s, "whsec_"))
	})
}

// readStandard parses Fanfare's own format. Its signature follows Standard Webhooks 1.0: HMAC-SHA-256 of id,
// timestamp and body, with dots between them.
func readStandard(secrets [][]byte, header func(name string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	const how = "sign it according to Standard Webhooks: send webhook-id, webhook-timestamp and webhook-signature, which is v1, followed by the HMAC-SHA-256 of the ID, the timestamp and the body"
	id, at := header("Webhook-Id"), header("Webhook-Timestamp")
	if id == "" || !signedBy(secrets, header("Webhook-Signature"), id+"."+at+".", body) {
		return ProviderReceipt{}, unsigned(how)
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > receiptAge {
		return ProviderReceipt{}, outdated("send the receipt within five minutes of signing it, and sign each retry again")
	}
	return standardReceipt(body)
}

// signedBy reports whether one of the signatures was made with one of the secrets.
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

// finish derives missing values and limits the size of all values.
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
		r.At = now // the provider sent no time or an impossible one
	}
}

// replyCode returns an SMTP code, or 0 for codes of a provider.
func replyCode(code int) int {
	if code < 400 || code > 555 {
		return 0
	}
	return code
}

// standardOutcomes are the kinds of a receipt in Fanfare's own format.
var standardOutcomes = map[string]Outcome{"delivered": Delivered, "failed": Failed, "delayed": Delayed, "complained": Complained}

// standardReceipt parses {"delivery", "kind"} and the optional members.
func standardReceipt(body []byte) (ProviderReceipt, error) {
	var in struct {
		Delivery  string        `json:"delivery"`
		MessageID string        `json:"message_id"`
		Recipient string        `json:"recipient"`
		Kind      string        `json:"kind"`
		Class     fanfare.Class `json:"class"`
		Status    string        `json:"status"`
		Code      int           `json:"code"`
		Text      string        `json:"text"`
		Relay     string        `json:"relay"`
		Time      time.Time     `json:"time"`
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return ProviderReceipt{}, noReceipt("", "the receipt is not valid JSON in the expected format: "+strings.TrimPrefix(err.Error(), "json: "),
			`send {"delivery":"dlv-…","kind":"failed","class":"invalid","text":"550 5.1.1 User unknown","time":"2026-11-20T12:00:00Z"}`)
	}
	outcome, known := standardOutcomes[in.Kind]
	switch {
	case !known:
		return ProviderReceipt{}, noReceipt("/kind", fmt.Sprintf("unknown kind %q", in.Kind), "use delivered, failed, delayed or complained")
	case (in.Delivery == "") == (in.MessageID == ""):
		return ProviderReceipt{}, noReceipt("/delivery", "the receipt does not identify a message", "set either delivery or message_id")
	case in.Class != "" && !slices.Contains(fanfare.Classes[:], in.Class):
		return ProviderReceipt{}, noReceipt("/class", fmt.Sprintf("unknown class %q", in.Class), "use throttled, greylisted, full, busy, network, blocked, invalid, content or denied, or omit it and set text")
	}
	r := ProviderReceipt{Message: in.Delivery + in.MessageID, At: in.Time,
		Report: Report{Outcome: outcome, Class: in.Class, Recipient: in.Recipient, Status: in.Status, Code: in.Code, Text: in.Text, Relay: in.Relay}}
	if outcome == Complained {
		r.Report.Class, r.Report.Feedback = "", "abuse"
	}
	r.Report.Certain = in.Class == fanfare.ClassInvalid && outcome == Failed && slices.Contains(noMailbox, in.Status)
	return r, nil
}

// mailgunAge is the maximum age of a Mailgun request: Mailgun retries for eight hours.
const mailgunAge = 9 * time.Hour

// maxMailgunToken is more than the 50 characters that Mailgun's tokens have.
const maxMailgunToken = 100

// mailgunDocument contains the required members of a Mailgun webhook ("Securing Webhooks" and "Webhook Payloads" of its
// user manual).
type mailgunDocument struct {
	Signature struct {
		Timestamp string `json:"timestamp"`
		Token     string `json:"token"`
		Signature string `json:"signature"`
	} `json:"signature"`
	Event struct {
		Event     string  `json:"event"`
		Severity  string  `json:"severity"`
		Reason    string  `json:"reason"`
		Recipient string  `json:"recipient"`
		Timestamp float64 `json:"timestamp"`
		Message   struct {
			Headers struct {
				MessageID string `json:"message-id"`
			} `json:"headers"`
		} `json:"message"`
		Status struct {
			Code         json.RawMessage `json:"code"` // mostly a number
			EnhancedCode string          `json:"enhanced-code"`
			Message      string          `json:"message"`
			Description  string          `json:"description"`
			MXHost       string          `json:"mx-host"`
		} `json:"delivery-status"`
	} `json:"event-data"`
}

// readMailgun parses a Mailgun webhook. Its signature is HMAC-SHA-256 of timestamp and token, in hex, with the webhook
// signing key of the account. It does not cover the event, so the caller must make sure that a token is used for only
// one document.
func readMailgun(secrets [][]byte, _ func(string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	var in mailgunDocument
	if err := json.Unmarshal(body, &in); err != nil {
		return ProviderReceipt{}, noReceipt("", "the body is not a Mailgun webhook: its JSON does not have the expected format", "in Mailgun's control panel, use this URL for a webhook, not for a route")
	}
	sig := &in.Signature
	given, err := hex.DecodeString(sig.Signature)
	found := false
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(sig.Timestamp + sig.Token))
		if hmac.Equal(given, mac.Sum(nil)) {
			found = true
		}
	}
	if err != nil || !found || sig.Token == "" || len(sig.Token) > maxMailgunToken {
		return ProviderReceipt{}, unsigned("use the HTTP webhook signing key of the account, not an API key")
	}
	seconds, err := strconv.ParseInt(sig.Timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age > mailgunAge || age < -receiptAge {
		return ProviderReceipt{}, outdated("Mailgun retries webhooks for up to eight hours; check the clock of this server")
	}
	r := in.receipt()
	r.Token = sig.Timestamp + "." + sig.Token
	return r, nil
}

// receipt returns the meaning of an event; it is Unknown for events without consequences.
func (in *mailgunDocument) receipt() ProviderReceipt {
	e := &in.Event
	r := ProviderReceipt{Message: e.Message.Headers.MessageID}
	if e.Timestamp > 0 && e.Timestamp < 1e11 {
		r.At = time.UnixMicro(int64(e.Timestamp * 1e6)).UTC()
	}
	p := &r.Report
	p.Recipient, p.Relay, p.Status = e.Recipient, e.Status.MXHost, e.Status.EnhancedCode
	p.Text = cmp.Or(e.Status.Message, e.Status.Description)
	p.Code, _ = strconv.Atoi(string(e.Status.Code)) // 0 if it is not a number
	switch e.Event {
	case "delivered":
		p.Outcome = Delivered
	case "complained":
		p.Outcome, p.Feedback = Complained, "abuse"
	case "failed":
		p.Outcome = Failed
		if e.Severity == "temporary" {
			p.Outcome = Delayed
		}
		// Mailgun did not try an address on its own suppression list.
		switch e.Reason {
		case "suppress-bounce":
			p.Class = fanfare.ClassInvalid
		case "suppress-complaint", "suppress-unsubscribe":
			p.Class = fanfare.ClassBlocked
		}
	}
	return r
}
