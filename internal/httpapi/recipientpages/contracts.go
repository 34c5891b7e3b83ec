package recipientpages

import (
	"context"
	"encoding/json"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people"
	"fanfare.dev/fanfare/internal/people/pages"
)

// Signups take people in who ask for it, once they have shown that an address is
// theirs. NotFound is a topic that lets nobody sign up, or a token of others.
type Signups interface {
	Form(service, topic string) (SignupForm, error)
	// Ask mails a link to confirm, if may says so.
	// Its error is about what was asked for alone.
	Ask(ctx context.Context, service string, ask *SignupAsk, may MayMail) error
	Look(ctx context.Context, token string) (Confirmation, error)
	// Confirm is durable when it returns, and idempotent.
	Confirm(ctx context.Context, token string) (Confirmation, error)
}

// Choices show people what they get, and change it, by a link.
type Choices interface {
	Preferences(ctx context.Context, token string) (Preferences, error)
	Choose(ctx context.Context, token string, ask PreferenceChange) (Unsubscribed, error)
	// Renew mails a new link to whom an old one belongs, if may says so.
	Renew(ctx context.Context, token string, may MayMail) error
	// Move mails a link to another address, that ConfirmMove has all go to, if may
	// says so.
	Move(ctx context.Context, token, to string, may MayMail) error
	LookMove(ctx context.Context, token string) (Confirmation, error)
	ConfirmMove(ctx context.Context, token string) (Confirmation, error)
}

// MayMail counts a mail to an address in its normal form, and says whether its owner
// may get it.
type MayMail func(service, address string) bool

// Consents tell what people agreed to.
type Consents interface {
	Consents(ctx context.Context, service, subscriber string) ([]people.Consent, error)
}

// A SignupForm is what there is to fill in.
type SignupForm struct {
	Site     *pages.Site
	Title    string // of the topic
	Signup   catalog.Signup
	Rules    []catalog.Rule
	Channels []pages.Channel
	Cadences []string // none: there is no choice
	Locales  []string // that the pages are in
}

// A SignupAsk is what somebody wants to be told.
type SignupAsk struct {
	Topic    string          `json:"topic" doc:"must be there; it need not let people sign up by themselves"`
	Channel  string          `json:"channel" doc:"one that sends mail"`
	To       string          `json:"to" doc:"address that the link to confirm is mailed to"`
	Rule     string          `json:"rule,omitempty" doc:"name of a rule of the topic"`
	Params   json.RawMessage `json:"params,omitempty" doc:"object: values for the rule's params"`
	Cadence  string          `json:"cadence,omitempty" doc:"when messages are due; default: the topic's cadence"`
	Locale   string          `json:"locale,omitempty" doc:"of the subscriber, and of the mail, such as de-AT"`
	TimeZone string          `json:"time_zone,omitempty" doc:"of the subscriber, such as Europe/Vienna"`
	Terms    string          `json:"terms,omitempty" maxLength:"512" doc:"version or URL of the terms that they agree to"`
	Source   string          `json:"source,omitempty" maxLength:"512" doc:"place of the request"`
}

// A Confirmation is what a link confirms.
type Confirmation struct {
	Site        *pages.Site
	Locale      string
	Title       string // of the rule or of the topic
	About       string // a description, or ""
	Detail      string
	Address     string
	Terms       string
	Late        bool   // too late, or used before
	Preferences string // path to what they get, when it is confirmed
}

// Preferences are what somebody gets.
type Preferences struct {
	Site     *pages.Site
	Locale   string
	TimeZone string
	Locales  []string
	List     []pages.Preference
	Late     bool // the link is too old: there is nothing but how to get another
}

// PreferenceChange is what somebody wants to get from now on.
type PreferenceChange struct {
	Locale, TimeZone string
	Each             map[string]SubscriptionChange // by id; what is not named stays
}

// A ChosenOne is one subscription as it shall be. Values that are not offered leave it unchanged.
type SubscriptionChange struct {
	Keep             bool
	Cadence, Channel string
}

// Person is the merge patch of a subscriber, nil where nothing changes.
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
