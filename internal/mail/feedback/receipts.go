package feedback

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/people/registry"
)

// maxTokens is the number of remembered tokens of receipts whose signature does not cover the document. An attacker
// who has read a forgotten token can send one other document with it.
const maxTokens = 100_000

// ReceiptOptions are the parts that Receipts work with.
type ReceiptOptions struct {
	Registry *registry.Registry
	Handler  Handler
	Clock    clock.Clock
	Logger   *slog.Logger
}

// Receipts process the receipts that providers send over HTTP, for the channels that are configured to accept them.
type Receipts struct {
	options ReceiptOptions

	mu     sync.Mutex
	tokens map[[sha256.Size]byte][sha256.Size]byte // hash of a token -> hash of its document
	ring   [][sha256.Size]byte                     // the remembered tokens
	next   int                                     // oldest entry of a full ring
}

// NewReceipts returns Receipts without remembered tokens.
func NewReceipts(o ReceiptOptions) *Receipts {
	return &Receipts{options: o, tokens: map[[sha256.Size]byte][sha256.Size]byte{}}
}

// TakeReceipt verifies a request and processes its receipt. A client without the secret learns only whether the
// channel accepts receipts.
func (r *Receipts) TakeReceipt(ctx context.Context, service, channel string, header http.Header, body []byte) error {
	notFound := &fanfare.Error{Code: fanfare.NotFound, Message: "no channel accepts receipts at this address", Hint: "set receipts for the channel, and use the path /receipts/SERVICE/CHANNEL"}
	c := r.options.Registry.Configuration().Channel(service, channel)
	if c == nil || c.Receipts == (catalog.Receipts{}) {
		return notFound
	}
	forms := bounce.ReceiptForms()
	i := slices.IndexFunc(forms, func(f bounce.ReceiptForm) bool { return f.Name == c.Receipts.Form })
	if i < 0 {
		return notFound
	}
	text, err := c.ReceiptSecrets()
	if err == nil {
		var secrets [][]byte
		if secrets, err = forms[i].Secrets(text); err == nil {
			return r.process(ctx, c, &forms[i], secrets, header.Get, body)
		}
	}
	r.options.Logger.Warn("cannot verify a receipt; the provider was asked to send it again", "service", service, "channel", channel, "error", err)
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server cannot read the receipt secret of this channel", Hint: "ask the operator to check the server log for the reason"}
}

// process verifies a receipt with the secrets of its channel and processes it.
func (r *Receipts) process(ctx context.Context, c *catalog.Channel, form *bounce.ReceiptForm, secrets [][]byte, header func(string) string, body []byte) error {
	now := r.options.Clock.Now()
	receipt, err := form.Read(secrets, header, body, now)
	if err != nil {
		return err
	}
	token, document := sha256.Sum256([]byte(receipt.Token)), sha256.Sum256(body)
	if receipt.Token != "" && r.usedForOther(token, document) {
		return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the token of the receipt was already used for another document", Hint: "send each document with a new token"}
	}
	if delivery, shared, ok := parseMessageID(receipt.Message); ok { // otherwise another program sent it over the same account
		err := r.options.Handler.Take(ctx, bounce.Arrival{Kind: bounce.Receipt, Delivery: delivery, Shared: shared, Service: c.Service,
			Reports: []bounce.Report{receipt.Report}, Source: "receipt " + c.Name, At: receipt.At})
		if err != nil {
			return err
		}
	}
	if receipt.Token != "" {
		r.remember(token, document)
	}
	return nil
}

// parseMessageID parses the id of a delivery, or a Message-ID that contains it or, for a message to several
// recipients, the id of its event.
func parseMessageID(id string) (delivery fanfare.DeliveryRef, shared, ok bool) {
	local, _, _ := strings.Cut(id, "@")
	if delivery, ok = fanfare.ParseDeliveryRef(local); ok {
		return delivery, false, true
	}
	id, _, cut := strings.Cut(local, ".")
	event, ok := fanfare.ParseEventRef(id)
	if !ok || !cut {
		return delivery, false, false
	}
	return fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, 0)}, true, true
}

// usedForOther reports whether a token was already used for another document.
func (r *Receipts) usedForOther(token, document [sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, known := r.tokens[token]
	return known && seen != document
}

// remember records which document a token was used for.
func (r *Receipts) remember(token, document [sha256.Size]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.tokens[token]; known {
		return
	}
	if len(r.ring) < maxTokens {
		r.ring = append(r.ring, token)
	} else {
		delete(r.tokens, r.ring[r.next])
		r.ring[r.next] = token
		r.next = (r.next + 1) % maxTokens
	}
	r.tokens[token] = document
}
