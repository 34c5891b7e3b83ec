package catalog

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// NotifySettings let clients of GOV.UK Notify use a service. Without a channel, no client can.
type NotifySettings struct {
	ID        string         `json:"id,omitempty"`          // UUID of the service in keys and links; for good
	Email     string         `json:"email,omitempty"`       // the channel of mails; "": mails are refused
	SMS       string         `json:"sms,omitempty"`         // the channel of text messages; "": they are refused
	Trial     bool           `json:"trial,omitempty"`       // only team and guests can be recipients
	Team      []string       `json:"team,omitempty"`        // addresses and phone numbers in normal form
	GuestList []string       `json:"guest_list,omitempty"`  // other allowed recipients of team keys and of a service on trial
	Contact   string         `json:"contact,omitempty"`     // address, number or URL on download pages; "": no files
	Rate      Rate           `json:"rate,omitzero"`         // of requests that send, for each type of key; zero: NotifyRate
	Daily     NotifyDaily    `json:"daily,omitzero"`        // messages a day
	ReplyTo   []NotifySender `json:"reply_to,omitempty"`    // addresses from which a request can choose
	Senders   []NotifySender `json:"sms_senders,omitempty"` // names or numbers from which a request can choose
	SMSPrefix bool           `json:"sms_prefix,omitempty"`  // text messages begin with the title of the service

	Callbacks NotifyCallbacks `json:"callbacks,omitzero"`

	// ReportAccepted says when the API reports an accepted message as delivered: NotifyNever or "",
	// NotifyImmediately, or NotifyAfter and a duration.
	ReportAccepted string `json:"report_accepted_as_delivered,omitempty"`
}

// NotifyCallbacks are the channels that post callbacks; "": none. Each has one receiver.
type NotifyCallbacks struct {
	Delivery string `json:"delivery,omitempty"` // of the final status of a notification
}

// A NotifySender is an address, a name or a number that a request can choose by its id.
type NotifySender struct {
	ID      string `json:"id"` // UUID
	Address string `json:"address"`
	Default bool   `json:"default,omitempty"` // of requests that choose none
}

// NotifyDaily are the maximum numbers of messages on one day in UTC; 0: the default.
type NotifyDaily struct {
	Email int `json:"email,omitempty"`
	SMS   int `json:"sms,omitempty"`
}

// Values of ReportAccepted.
const (
	NotifyNever       = "never"
	NotifyImmediately = "immediately"
	NotifyAfter       = "after "
)

// The defaults of GOV.UK Notify.
const (
	notifyDaily      = 250_000
	notifyDailyTrial = 50
)

// NotifyRate is the default rate.
var NotifyRate = Rate{Count: 3000, Per: time.Minute}

// The channels of test keys, which deliver nothing. An apply creates them.
const (
	NotifyTestEmail = "notify-test-email"
	NotifyTestSMS   = "notify-test-sms"
)

// Active reports whether clients of GOV.UK Notify can use the service.
func (s *NotifySettings) Active() bool { return s.ID != "" && s.Email+s.SMS != "" }

// RateLimit returns the rate of requests that send.
func (s *NotifySettings) RateLimit() Rate {
	if s.Rate == (Rate{}) {
		return NotifyRate
	}
	return s.Rate
}

// DailyLimit returns the maximum number of messages of a type on one day.
func (s *NotifySettings) DailyLimit(sms bool) int {
	limit := s.Daily.Email
	if sms {
		limit = s.Daily.SMS
	}
	switch {
	case limit > 0:
		return limit
	case s.Trial:
		return notifyDailyTrial
	}
	return notifyDaily
}

// DeliveredAfter returns the time after which an accepted message is reported as delivered; false
// if it never is.
func (s *NotifySettings) DeliveredAfter() (time.Duration, bool) {
	if s.ReportAccepted == NotifyImmediately {
		return 0, true
	}
	text, ok := strings.CutPrefix(s.ReportAccepted, NotifyAfter)
	if !ok {
		return 0, false
	}
	wait, err := time.ParseDuration(text)
	return wait, err == nil
}

// InTeam reports whether a recipient is in the team or on the guest list. The address is in normal
// form.
func (s *NotifySettings) InTeam(recipient string) bool {
	same := func(one string) bool { return strings.EqualFold(one, recipient) }
	return slices.ContainsFunc(s.Team, same) || slices.ContainsFunc(s.GuestList, same)
}

// ChooseSender returns the member of a list with an id or, without an id, the default; false if
// there is no such member.
func ChooseSender(list []NotifySender, id string) (NotifySender, bool) {
	at := slices.IndexFunc(list, func(s NotifySender) bool { return s.ID == id || id == "" && s.Default })
	if at < 0 {
		return NotifySender{}, id == ""
	}
	return list[at], true
}

// NotifyService returns the service with a UUID.
func (s *Snapshot) NotifyService(id string) (*ServiceSnapshot, bool) {
	for _, svc := range s.Services {
		if svc.Notify.ID == id && svc.Notify.Active() {
			return svc, true
		}
	}
	return nil, false
}

// CheckReportAccepted refuses text that is not a value of ReportAccepted.
func CheckReportAccepted(text string) (problem string) {
	switch {
	case text == NotifyNever || text == NotifyImmediately:
		return ""
	case strings.HasPrefix(text, NotifyAfter):
		if wait, err := time.ParseDuration(text[len(NotifyAfter):]); err == nil && wait > 0 && wait <= 7*24*time.Hour {
			return ""
		}
	}
	return strconv.Quote(text) + " is not never, immediately, or after and a duration of at most 168h"
}
