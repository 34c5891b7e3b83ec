// Package recipientpages serves the pages of recipients: to sign up, to unsubscribe and to
// change preferences.
package recipientpages

import (
	"context"
	"net/http"
	"net/netip"
	"time"

	"fanfare.dev/fanfare/internal/mail/linktoken"
	"fanfare.dev/fanfare/internal/people/pages"
)

// Unsubscriber ends subscriptions of recipients who have a link. NotFound means that the
// token is not from this server.
type Unsubscriber interface {
	// Offer lists the subscriptions that the link of a message can end; it changes nothing.
	Offer(ctx context.Context, token string) (UnsubscribeOffer, error)
	// Unsubscribe is durable when it returns, and idempotent.
	Unsubscribe(ctx context.Context, token string, ask UnsubscribeRequest) (Unsubscribed, error)
	// Undo restores the subscriptions that an Unsubscribe ended; without really it changes nothing.
	Undo(ctx context.Context, token string, really bool) (UndoResult, error)
}

// An Offer lists the subscriptions that a recipient can end.
type UnsubscribeOffer struct {
	Site    *pages.Site
	Locale  string
	Choices []pages.Choice // empty if all subscriptions have ended
}

// An UnsubscribeRequest selects the subscriptions to end. The zero value selects those
// that the message was about.
type UnsubscribeRequest struct {
	Chosen []string // chosen subscriptions; not nil: only these
	All    bool     // all subscriptions of the service
	Reason string   // one of UnsubscribeReasons, or ""
}

// ByPage reports whether the request is from the form of the page, not from a one-click unsubscribe.
func (l *UnsubscribeRequest) ByPage() bool { return l.Chosen != nil || l.All }

// Unsubscribed is the result of an unsubscribe.
type Unsubscribed struct {
	Site   *pages.Site
	Locale string
	Titles []string // titles of the ended subscriptions
	Undo   string   // token to undo it, or ""
}

// UndoResult is the result of an undo, or of its preview.
type UndoResult struct {
	Site   *pages.Site
	Locale string
	Late   bool // it is too late to undo
}

// UnsubscribeReasons are the reasons that the page offers, with the text that is stored.
var UnsubscribeReasons = map[string]string{"often": "too many messages", "topic": "not interested in the messages", "never": "never subscribed", "other": "another reason"}

// Handlers handle the requests for recipient pages.
type Handlers struct {
	Unsubscriber Unsubscriber
	Signups      Signups
	Choices      Choices
	MailPrograms MailPrograms
	From         func(*http.Request) netip.Addr // the address of the client
	Now          func() time.Time
	limits       *signupLimits
}

// NewHandlers returns h with limits for sign-ups; seals is the key for the tokens of forms.
func NewHandlers(h Handlers, seals *linktoken.Key) *Handlers {
	h.limits = &signupLimits{seals: seals}
	return &h
}
