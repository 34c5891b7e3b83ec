package recipientpages

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
)

// Signups subscribes people who have confirmed their address. NotFound means that the topic
// has no sign-up page, or that the token is not from this server.
type Signups interface {
	Form(service, topic string) (SignupForm, error)
	// Ask sends an email with a confirmation link, if may allows it.
	// Its errors are only about the request itself.
	Ask(ctx context.Context, service string, ask *SignupAsk, may MayMail) error
	Look(ctx context.Context, token string) (Confirmation, error)
	// Confirm is durable when it returns, and idempotent.
	Confirm(ctx context.Context, token string) (Confirmation, error)
}

// Choices shows and changes the preferences of recipients who have a link.
type Choices interface {
	Preferences(ctx context.Context, token string) (Preferences, error)
	Choose(ctx context.Context, token string, ask PreferenceChange) (Unsubscribed, error)
	// Renew sends a new link to the owner of an old one, if may allows it.
	Renew(ctx context.Context, token string, may MayMail) error
	// Move sends a link to a new address, if may allows it. ConfirmMove then moves all
	// subscriptions to that address.
	Move(ctx context.Context, token, to string, may MayMail) error
	LookMove(ctx context.Context, token string) (Confirmation, error)
	ConfirmMove(ctx context.Context, token string) (Confirmation, error)
}

// MayMail counts an email to an address in its normal form, and reports whether it
// may be sent.
type MayMail func(service, address string) bool

// Consents reads the consents of subscribers.
type Consents interface {
	Consents(ctx context.Context, service, subscriber string) ([]people.Consent, error)
}

// A SignupForm has the contents of the sign-up form.
type SignupForm struct {
	Site     *pages.Site
	Title    string // of the topic
	Signup   catalog.Signup
	Rules    []catalog.Rule
	Channels []pages.Channel
	Cadences []string // empty: there is no choice
	Locales  []string // languages of the pages
}

// A SignupAsk is a subscription that the recipient has to confirm.
type SignupAsk struct {
	Topic    string          `json:"topic" doc:"name of an existing topic; it does not need the setting signup"`
	Channel  string          `json:"channel" doc:"name of an email channel"`
	To       string          `json:"to" doc:"address that gets the confirmation link"`
	Rule     string          `json:"rule,omitempty" doc:"name of a rule of the topic"`
	Params   json.RawMessage `json:"params,omitempty" doc:"object: values for the rule's params"`
	Cadence  string          `json:"cadence,omitempty" doc:"when messages are due; default: the topic's cadence"`
	Locale   string          `json:"locale,omitempty" doc:"locale of the subscriber and of the email, such as de-AT"`
	TimeZone string          `json:"time_zone,omitempty" doc:"time zone of the subscriber, such as Europe/Vienna"`
	Terms    string          `json:"terms,omitempty" maxLength:"512" doc:"version or URL of the terms that the subscriber agrees to"`
	Source   string          `json:"source,omitempty" maxLength:"512" doc:"where the request was made"`
}

// A Confirmation describes what a link confirms.
type Confirmation struct {
	Site        *pages.Site
	Locale      string
	Title       string // of the rule or of the topic
	About       string // a description, or ""
	Detail      string
	Address     string
	Terms       string
	Late        bool   // too late, or used before
	Preferences string // path of the preferences page, after the confirmation
}

// Preferences are the subscriptions and settings of a recipient.
type Preferences struct {
	Site     *pages.Site
	Locale   string
	TimeZone string
	Locales  []string
	List     []pages.Preference
	Late     bool // the link has expired: the page only offers a new one

	MailPrograms bool // the page offers a link to set up mail programs
}

// PreferenceChange has the changes that a recipient made on the page.
type PreferenceChange struct {
	Locale, TimeZone string
	Each             map[string]SubscriptionChange // by id; other subscriptions do not change
}

// A SubscriptionChange is the new state of one subscription. Values that the page does not offer are ignored.
type SubscriptionChange struct {
	Keep             bool
	Cadence, Channel string
}

// Person returns the merge patch for the subscriber, or nil if nothing changes.
func (c *PreferenceChange) Person(locale, zone string) map[string]any {
	patch := map[string]any{}
	for name, change := range map[string]struct{ is, was string }{"locale": {c.Locale, locale}, "time_zone": {c.TimeZone, zone}} {
		if change.is == change.was {
			continue
		}
		if patch[name] = change.is; change.is == "" {
			patch[name] = nil
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
