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

// Leaving lets recipients go who have a link. NotFound is a token that this server
// did not make.
type Leaving interface {
	// Offer tells what the link of a message lets its recipient leave; it changes nothing.
	Offer(ctx context.Context, token string) (Offer, error)
	// Leave is durable when it returns, and idempotent.
	Leave(ctx context.Context, token string, ask Leave) (Left, error)
	// Undo takes back what a Leave did; without really it only looks.
	Undo(ctx context.Context, token string, really bool) (Undone, error)
}

// An Offer is what somebody can leave.
type Offer struct {
	Site    *pages.Site
	Locale  string
	Choices []pages.Choice // none: nothing is left to leave
}

// A Leave says what somebody leaves. The zero one is: what the message was about.
type Leave struct {
	Chosen []string // of the choices; not nil: these alone
	All    bool     // everything of the service
	Reason string   // one of LeaveReasons, or ""
}

// ByPage reports whether somebody chose on the page, and did not click once.
func (l *Leave) ByPage() bool { return l.Chosen != nil || l.All }

// Left is what came of it.
type Left struct {
	Site   *pages.Site
	Locale string
	Titles []string // of what ended now
	Undo   string   // token of the way back, or ""
}

// Undone is what came of an undo, or would.
type Undone struct {
	Site   *pages.Site
	Locale string
	Late   bool // nothing can be taken back any more
}

// LeaveReasons are those that the page offers; each is kept as these words.
var LeaveReasons = map[string]string{"often": "too many messages", "topic": "not about what they want to know", "never": "never asked for them", "other": "another reason"}

// Handlers answer the requests for pages of recipients.
type Handlers struct {
	Leaving Leaving
	Signups Signups
	Choices Choices
	From    func(*http.Request) netip.Addr // the address of the client
	Now     func() time.Time
	doors   *doors
}

// NewHandlers returns h with limits of sign-ups; the seals are those of forms.
func NewHandlers(h Handlers, seals *linktoken.Key) *Handlers {
	h.doors = &doors{seals: seals}
	return &h
}
