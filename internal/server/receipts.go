package server

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/mail/bounce"
	"fanfare.dev/fanfare/internal/registry"
)

// maxReceiptTokens is how many tokens are remembered of receipts whose signature does
// not cover the document. Of one that is forgotten again nothing worse follows than
// that who has overheard it may say something else with it.
const maxReceiptTokens = 100_000

// receipts take what providers say over HTTP of messages, for the channels that are
// set so.
type receipts struct {
	registry *registry.Registry
	taker    taker
	clock    clock.Clock
	log      *slog.Logger

	mu     sync.Mutex
	tokens map[[sha256.Size]byte][sha256.Size]byte // the document that a token came with
	oldest [][sha256.Size]byte                     // a ring of them
	next   int
}

// TakeReceipt verifies a request and keeps what follows from it. Whoever has no
// secret learns nothing but whether there is a channel that takes receipts.
func (t *receipts) TakeReceipt(ctx context.Context, service, channel string, header http.Header, body []byte) error {
	nobody := &fanfare.Error{Code: fanfare.NotFound, Message: "no channel takes receipts here", Hint: "set receipts for the channel, and use the address /receipts/SERVICE/CHANNEL"}
	c := t.registry.Configuration().Channel(service, channel)
	if c == nil || c.Receipts == (registry.Receipts{}) {
		return nobody
	}
	forms := bounce.ReceiptForms()
	i := slices.IndexFunc(forms, func(f bounce.ReceiptForm) bool { return f.Name == c.Receipts.Form })
	if i < 0 {
		return nobody
	}
	text, err := c.ReceiptSecrets()
	if err == nil {
		var secrets [][]byte
		if secrets, err = forms[i].Secrets(text); err == nil {
			return t.read(ctx, c, &forms[i], secrets, header.Get, body)
		}
	}
	t.log.Warn("a receipt could not be verified, whoever sent it was asked to come again", "service", service, "channel", channel, "error", err)
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "the server cannot read the secret of this channel's receipts", Hint: "its operator finds the reason in the log"}
}

// read takes a receipt that is verified with the secrets of its channel.
func (t *receipts) read(ctx context.Context, c *registry.Channel, form *bounce.ReceiptForm, secrets [][]byte, header func(string) string, body []byte) error {
	now := t.clock.Now()
	receipt, err := form.Read(secrets, header, body, now)
	if err != nil {
		return err
	}
	token, document := sha256.Sum256([]byte(receipt.Token)), sha256.Sum256(body)
	if receipt.Token != "" && t.foreign(token, document) {
		return &fanfare.Error{Code: fanfare.Unauthenticated, Message: "the receipt's token came with another document before", Hint: "send each document with a token of its own"}
	}
	if delivery, shared, ok := messageNamed(receipt.Message); ok { // else it is another's, over the same account
		err := t.taker.Take(ctx, bounce.Arrival{Kind: bounce.Receipt, Delivery: delivery, Shared: shared, Service: c.Service,
			Reports: []bounce.Report{receipt.Report}, Source: "receipt " + c.Name, At: receipt.At})
		if err != nil {
			return err
		}
	}
	if receipt.Token != "" {
		t.remember(token, document)
	}
	return nil
}

// messageNamed reads the id of a delivery, or the Message-ID that was made of it or of
// the event of a message to several.
func messageNamed(id string) (delivery fanfare.DeliveryRef, shared, ok bool) {
	local, _, _ := strings.Cut(id, "@")
	if delivery, ok = fanfare.ParseDeliveryRef(local); ok {
		return delivery, false, true
	}
	of, _, cut := strings.Cut(local, ".")
	event, ok := fanfare.ParseEventRef(of)
	if !ok || !cut {
		return delivery, false, false
	}
	return fanfare.DeliveryRef{Day: event.Day, Manifest: fanfare.NewManifestID(event.Seq, 0)}, true, true
}

// foreign reports whether a token came with another document before.
func (t *receipts) foreign(token, document [sha256.Size]byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, known := t.tokens[token]
	return known && was != document
}

// remember keeps with which document a token came.
func (t *receipts) remember(token, document [sha256.Size]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == nil {
		t.tokens = map[[sha256.Size]byte][sha256.Size]byte{}
	}
	if _, known := t.tokens[token]; known {
		return
	}
	if len(t.oldest) < maxReceiptTokens {
		t.oldest = append(t.oldest, token)
	} else {
		delete(t.tokens, t.oldest[t.next])
		t.oldest[t.next] = token
		t.next = (t.next + 1) % maxReceiptTokens
	}
	t.tokens[token] = document
}
