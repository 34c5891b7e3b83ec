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

// Unsubscriber lets recipients go who have a link. NotFound is a token that this server
// did not make.
type Unsubscriber interface {
	// Offer tells what the link of a message lets its recipient leave; it changes nothing.
	Offer(ctx context.Context, token string) (UnsubscribeOffer, error)
	// Leave is durable when it returns, and idempotent.
	Unsubscribe(ctx context.Context, token string, ask UnsubscribeRequest) (Unsubscribed, error)
	// Undo takes back what a Leave did; without really it only looks.
	Undo(ctx context.Context, token string, really bool) (UndoResult, error)
}

// An Offer is what somebody can leave.
type UnsubscribeOffer struct {
	Site    *pages.Site
	Locale  string
	Choices []pages.Choice // none: nothing is left to leave
}

// A Leave says what somebody leaves. The zero one is: what the message was about.
type UnsubscribeRequest struct {
	Chosen []string // of the choices; not nil: these alone
	All    bool     // everything of the service
	Reason string   // one of LeaveReasons, or ""
}

// ByPage reports whether somebody chose on the page, and did not click once.
func (l *UnsubscribeRequest) ByPage() bool { return l.Chosen != nil || l.All }

// Unsubscribed is what came of it.
type Unsubscribed struct {
	Site   *pages.Site
	Locale string
	Titles []string // of what ended now
	Undo   string   // token of the way back, or ""
}

// UndoResult is what came of an undo, or would.
type UndoResult struct {
	Site   *pages.Site
	Locale string
	Late   bool // nothing can be taken back any more
}

// UnsubscribeReasons are those that the page offers; each is kept as these words.
var UnsubscribeReasons = map[string]string{"often": "too many messages", "topic": "not about what they want to know", "never": "never asked for them", "other": "another reason"}

// Handlers answer the requests for pages of recipients.
type Handlers struct {
	Unsubscriber Unsubscriber
	Signups      Signups
	Choices      Choices
	From         func(*http.Request) netip.Addr // the address of the client
	Now          func() time.Time
	limits       *signupLimits
}

// NewHandlers returns h with limits of sign-ups; the seals are those of forms.
func NewHandlers(h Handlers, seals *linktoken.Key) *Handlers {
	h.limits = &signupLimits{seals: seals}
	return &h
}
