package bounce

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
)

// mailgunAge is how old a request of Mailgun may be: it comes again for eight hours.
const mailgunAge = 9 * time.Hour

// maxMailgunToken is more than the 50 characters that Mailgun's tokens have.
const maxMailgunToken = 100

// mailgunDocument is what is read of a webhook of Mailgun ("Securing Webhooks" and
// "Webhook Payloads" of its user manual). All else in it is passed over.
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
			Code         json.RawMessage `json:"code"` // a number, mostly
			EnhancedCode string          `json:"enhanced-code"`
			Message      string          `json:"message"`
			Description  string          `json:"description"`
			MXHost       string          `json:"mx-host"`
		} `json:"delivery-status"`
	} `json:"event-data"`
}

// readMailgun reads a webhook of Mailgun. Its signature is HMAC-SHA-256 of timestamp
// and token, in hex, with the webhook signing key of the account, and does not cover
// the event: who takes it has to make sure that a token comes with one document only.
func readMailgun(secrets [][]byte, _ func(string) string, body []byte, now time.Time) (ProviderReceipt, error) {
	var in mailgunDocument
	if err := json.Unmarshal(body, &in); err != nil {
		return ProviderReceipt{}, noReceipt("", "the body is not a webhook of Mailgun: it is no JSON of that form", "name this address as the URL of a webhook, not of a route, in Mailgun's control panel")
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
		return ProviderReceipt{}, unsigned("take the HTTP webhook signing key of the account, not an API key")
	}
	seconds, err := strconv.ParseInt(sig.Timestamp, 10, 64)
	if age := now.Sub(time.Unix(seconds, 0)); err != nil || age > mailgunAge || age < -receiptAge {
		return ProviderReceipt{}, outdated("Mailgun sends a webhook again for eight hours; look at the clock of this server")
	}
	r := in.receipt()
	r.Token = sig.Timestamp + "." + sig.Token
	return r, nil
}

// receipt says what an event means here. Of those that nothing follows from, it is
// Unknown.
func (in *mailgunDocument) receipt() ProviderReceipt {
	e := &in.Event
	r := ProviderReceipt{Message: e.Message.Headers.MessageID}
	if e.Timestamp > 0 && e.Timestamp < 1e11 {
		r.At = time.UnixMicro(int64(e.Timestamp * 1e6)).UTC()
	}
	p := &r.Report
	p.Recipient, p.Relay, p.Status = e.Recipient, e.Status.MXHost, e.Status.EnhancedCode
	p.Text = cmp.Or(e.Status.Message, e.Status.Description)
	p.Code, _ = strconv.Atoi(string(e.Status.Code)) // what is no number is no code
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
		// Mailgun does not try addresses on its own suppression list.
		switch e.Reason {
		case "suppress-bounce":
			p.Class = fanfare.ClassInvalid
		case "suppress-complaint", "suppress-unsubscribe":
			p.Class = fanfare.ClassBlocked
		}
	}
	return r
}
