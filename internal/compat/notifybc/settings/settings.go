package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/codes"
)

// Limits of the file.
const (
	maxFileBytes = 1 << 20
	maxTextBytes = 512 << 10
	maxAddresses = 1000
)

// Settings are those of the NotifyBC API.
type Settings struct {
	Service  string   `yaml:"service"`     // the service of Fanfare that holds all subscriptions and notifications
	Listen   string   `yaml:"listen"`      // host:port
	Root     string   `yaml:"restApiRoot"` // path before the routes
	HTTPHost string   `yaml:"httpHost"`    // base of links; "": that of the request
	Channels Channels `yaml:"channels"`

	AdminIPs                  []string `yaml:"adminIps"`
	TrustedReverseProxyIPs    []string `yaml:"trustedReverseProxyIps"`
	SiteMinderReverseProxyIPs []string `yaml:"siteMinderReverseProxyIps"` // nil: this machine, if the request was not forwarded
	SignIn                    `yaml:",inline"`

	Email        Email        `yaml:"email"`
	Subscription Subscription `yaml:"subscription"`
	Notification Notification `yaml:"notification"`
}

// Channels are the names of the channels of the service.
type Channels struct {
	Email string `yaml:"email"`
	SMS   string `yaml:"sms"`   // "": no text messages
	InApp string `yaml:"inApp"` // "": messages in the application are not put into mailboxes
}

// Email is about all emails.
type Email struct {
	DefaultFrom string `yaml:"from"` // of messages without a sender; "": the From of the channel
	Bounce      Bounce `yaml:"bounce"`
}

// Bounce is about addresses that do not exist.
type Bounce struct {
	UnsubscribeAbove int `yaml:"unsubThreshold"` // with more bounces, all subscriptions of an address end; 0: never
}

// Subscription is about subscriptions. The names in JSON and YAML are the same.
type Subscription struct {
	DetectDuplicatedSubscription bool           `yaml:"detectDuplicatedSubscription" json:"detectDuplicatedSubscription"`
	ConfirmationRequest          ByChannel      `yaml:"confirmationRequest" json:"confirmationRequest"`
	DuplicatedNotification       ByChannel      `yaml:"duplicatedSubscriptionNotification" json:"duplicatedSubscriptionNotification"`
	ConfirmationAcknowledgements Answer         `yaml:"confirmationAcknowledgements" json:"confirmationAcknowledgements"`
	Unsubscription               Unsubscription `yaml:"anonymousUnsubscription" json:"anonymousUnsubscription"`
	UndoUnsubscription           Answer         `yaml:"anonymousUndoUnsubscription" json:"anonymousUndoUnsubscription"`
}

// ByChannel has a message for each channel.
type ByChannel struct {
	Email *Message `yaml:"email" json:"email"`
	SMS   *Message `yaml:"sms" json:"sms"`
}

// Of returns the message of a channel, or nil.
func (b *ByChannel) Of(channel string) *Message {
	switch channel {
	case "email":
		return b.Email
	case "sms":
		return b.SMS
	}
	return nil
}

// Message is a message to one person.
type Message struct {
	ConfirmationCodeRegex string `yaml:"confirmationCodeRegex" json:"confirmationCodeRegex,omitempty"`
	SendRequest           bool   `yaml:"sendRequest" json:"sendRequest"`
	From                  string `yaml:"from" json:"from,omitempty"`
	Subject               string `yaml:"subject" json:"subject,omitempty"`
	TextBody              string `yaml:"textBody" json:"textBody,omitempty"`
	HTMLBody              string `yaml:"htmlBody" json:"htmlBody,omitempty"`
}

// Answer is the answer of a route that people open as a link.
type Answer struct {
	RedirectURL    string `yaml:"redirectUrl" json:"redirectUrl"`
	SuccessMessage string `yaml:"successMessage" json:"successMessage"`
	FailureMessage string `yaml:"failureMessage" json:"failureMessage"`
}

// Unsubscription is about the end of subscriptions.
type Unsubscription struct {
	Code struct {
		Required bool   `yaml:"required" json:"required"`
		Regex    string `yaml:"regex" json:"regex"`
	} `yaml:"code" json:"code"`
	Acknowledgements struct {
		OnScreen     Answer    `yaml:"onScreen" json:"onScreen"`
		Notification ByChannel `yaml:"notification" json:"notification"`
	} `yaml:"acknowledgements" json:"acknowledgements"`
}

// Notification is about notifications.
type Notification struct {
	LogSkipped bool `yaml:"logSkippedBroadcastPushDispatches"` // dispatch.skipped lists the subscriptions whose filters did not match
}

const defaultCode = `\d{5}`

// Defaults returns the settings of a file that sets only what it must.
func Defaults() *Settings {
	s := &Settings{Root: "/api", Channels: Channels{Email: "email"}, AdminIPs: []string{"127.0.0.1"}}
	s.Email.Bounce.UnsubscribeAbove = 5
	sub := &s.Subscription
	sub.ConfirmationRequest = ByChannel{
		Email: &Message{ConfirmationCodeRegex: defaultCode, SendRequest: true, Subject: "Confirm your subscription to {service_name}",
			TextBody: "To subscribe to {service_name}, open {subscription_confirmation_url}\nor enter the code {subscription_confirmation_code}.\n\nIf you did not ask for this, ignore this message.\n"},
		SMS: &Message{ConfirmationCodeRegex: defaultCode, SendRequest: true, TextBody: "Your code to subscribe to {service_name} is {subscription_confirmation_code}"},
	}
	sub.DuplicatedNotification = ByChannel{
		Email: &Message{Subject: "You have already subscribed to {service_name}", TextBody: "You asked to subscribe to {service_name}, and have done so before.\n\nIf you did not ask for this, ignore this message.\n"},
		SMS:   &Message{TextBody: "You have already subscribed to {service_name}"},
	}
	sub.ConfirmationAcknowledgements = Answer{SuccessMessage: "You are subscribed.", FailureMessage: "The subscription could not be confirmed."}
	sub.Unsubscription.Code.Required, sub.Unsubscription.Code.Regex = true, defaultCode
	sub.Unsubscription.Acknowledgements.OnScreen = Answer{SuccessMessage: "You are unsubscribed.", FailureMessage: "The subscription could not be ended."}
	sub.Unsubscription.Acknowledgements.Notification = ByChannel{
		Email: &Message{Subject: "You are unsubscribed", TextBody: "You will get no more messages of the {unsubscription_service_names}.\n\nIf this was a mistake, open {unsubscription_reversion_url}\n"},
	}
	sub.UndoUnsubscription = Answer{SuccessMessage: "You are subscribed again.", FailureMessage: "The subscription could not be restored."}
	return s
}

// Merge returns the settings with the members of a JSON object over them.
func (s Subscription) Merge(over json.RawMessage) (Subscription, error) {
	for _, b := range []*ByChannel{&s.ConfirmationRequest, &s.DuplicatedNotification, &s.Unsubscription.Acknowledgements.Notification} {
		for _, m := range []**Message{&b.Email, &b.SMS} {
			if *m != nil {
				own := **m
				*m = &own
			}
		}
	}
	if err := json.Unmarshal(over, &s); err != nil {
		return s, &fanfare.Error{Code: fanfare.Invalid, Message: "the value is not an object with the members of subscription: " + err.Error()}
	}
	return s, joined(s.check("/subscription"))
}

// ReadFile reads the settings in a file. Its error names everything that is wrong.
func ReadFile(path string) (*Settings, error) {
	b, err := readLimited(path)
	if err == nil {
		var s *Settings
		if s, err = Parse(b); err == nil {
			return s, nil
		}
	}
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Pointer: "/notifybc", Message: err.Error(), Hint: "set notifybc to a file that the user that runs the server can read"}
	}
	for _, e := range append([]*fanfare.Error{wrong}, wrong.Details...) {
		e.File = path
	}
	return nil, wrong
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, maxFileBytes+1))
}

// Parse reads settings. Unknown members are errors.
func Parse(b []byte) (*Settings, error) {
	switch {
	case len(b) > maxFileBytes:
		return nil, &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the file is larger than %d bytes", maxFileBytes)}
	case !utf8.Valid(b):
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: "the file is not valid UTF-8"}
	}
	s := Defaults()
	if err := yaml.UnmarshalWithOptions(b, s, yaml.Strict()); err != nil {
		return nil, syntaxFault(err)
	}
	return s, joined(s.check())
}

func syntaxFault(err error) *fanfare.Error {
	e := &fanfare.Error{Code: fanfare.Invalid, Message: strings.TrimSpace(err.Error()), Hint: "the reference of the NotifyBC API lists the members"}
	if syntax, ok := errors.AsType[yaml.Error](err); ok {
		e.Message = strings.TrimSpace(syntax.GetMessage())
		if token := syntax.GetToken(); token != nil {
			e.Line, e.Column = token.Position.Line, token.Position.Column
		}
	}
	return e
}

func joined(wrong []*fanfare.Error) error {
	switch len(wrong) {
	case 0:
		return nil
	case 1:
		return wrong[0]
	}
	return &fanfare.Error{Code: fanfare.Invalid, Message: "the settings of the NotifyBC API are invalid", Details: wrong}
}

func invalid(pointer, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// check returns everything that is wrong, and gives paths and hosts their normal form.
func (s *Settings) check() (wrong []*fanfare.Error) {
	refuse := func(e *fanfare.Error) { wrong = append(wrong, e) }
	if s.Service == "" {
		refuse(invalid("/service", "set it to the name of a service", "the service is missing"))
	}
	if _, _, err := net.SplitHostPort(s.Listen); err != nil {
		refuse(invalid("/listen", "set it to an address such as 127.0.0.1:3000", "%q is not host:port", s.Listen))
	}
	if s.Root = strings.TrimRight(s.Root, "/"); s.Root != "" && (s.Root[0] != '/' || strings.ContainsAny(s.Root, "?#%{} \r\n")) {
		refuse(invalid("/restApiRoot", "set it to a path such as /api", "%q is not a path", s.Root))
	}
	if s.HTTPHost = strings.TrimRight(s.HTTPHost, "/"); s.HTTPHost != "" {
		if problem := CheckHost(s.HTTPHost); problem != "" {
			refuse(invalid("/httpHost", "set it to the start of the links, such as https://notify.example.org", "%s", problem))
		}
	}
	if s.Channels.Email == "" && s.Channels.SMS == "" {
		refuse(invalid("/channels", "set email to the name of an SMTP channel of the service", "no channel is set"))
	}
	for name, list := range map[string][]string{"/adminIps": s.AdminIPs, "/trustedReverseProxyIps": s.TrustedReverseProxyIPs, "/siteMinderReverseProxyIps": s.SiteMinderReverseProxyIPs} {
		if _, err := Networks(list); err != nil {
			refuse(invalid(name, "list addresses and networks, such as 10.0.0.1 and 10.1.0.0/16", "%s", err.Error()))
		}
	}
	if s.Email.DefaultFrom != "" {
		if _, err := mail.ParseAddress(s.Email.DefaultFrom); err != nil {
			refuse(invalid("/email/from", "set it to an address such as News <news@example.org>", "%q is not an address", s.Email.DefaultFrom))
		}
	}
	if s.Email.Bounce.UnsubscribeAbove < 0 {
		refuse(invalid("/email/bounce/unsubThreshold", "set it to a number of bounces, or to 0 to keep the subscriptions", "%d is negative", s.Email.Bounce.UnsubscribeAbove))
	}
	wrong = append(wrong, s.SignIn.check()...)
	return append(wrong, s.Subscription.check("/subscription")...)
}

// CheckHost returns the problem with the start of links, or "".
func CheckHost(host string) (problem string) {
	u, err := url.Parse(host)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || len(host) > 500 || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`<>"',{}`, r) }) {
		return fmt.Sprintf("%.200q is not the start of http or https links", host)
	}
	return ""
}

// Networks parses addresses and networks.
func Networks(list []string) (all []netip.Prefix, err error) {
	if len(list) > maxAddresses {
		return nil, fmt.Errorf("the list has %d entries; at most %d are allowed", len(list), maxAddresses)
	}
	for _, text := range list {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			address, failed := netip.ParseAddr(text)
			if failed != nil {
				return nil, fmt.Errorf("%.100q is neither an address nor a network", text)
			}
			address = address.Unmap()
			network = netip.PrefixFrom(address, address.BitLen())
		}
		all = append(all, network)
	}
	return all, nil
}

func (s *Subscription) check(at string) (wrong []*fanfare.Error) {
	check := func(pointer string, b *ByChannel) {
		for name, m := range map[string]*Message{"email": b.Email, "sms": b.SMS} {
			if m != nil {
				wrong = append(wrong, m.check(at+pointer+"/"+name)...)
			}
		}
	}
	check("/confirmationRequest", &s.ConfirmationRequest)
	check("/duplicatedSubscriptionNotification", &s.DuplicatedNotification)
	check("/anonymousUnsubscription/acknowledgements/notification", &s.Unsubscription.Acknowledgements.Notification)
	for pointer, a := range map[string]*Answer{"/confirmationAcknowledgements": &s.ConfirmationAcknowledgements, "/anonymousUndoUnsubscription": &s.UndoUnsubscription,
		"/anonymousUnsubscription/acknowledgements/onScreen": &s.Unsubscription.Acknowledgements.OnScreen} {
		if a.RedirectURL == "" {
			continue
		}
		if u, err := url.Parse(a.RedirectURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || strings.ContainsAny(a.RedirectURL, "\r\n") {
			wrong = append(wrong, invalid(at+pointer+"/redirectUrl", "set it to an http or https link", "%.200q is not a link", a.RedirectURL))
		}
	}
	if _, err := codes.Parse(s.Unsubscription.Code.Regex); err != nil {
		wrong = append(wrong, invalid(at+"/anonymousUnsubscription/code/regex", codes.Hint, "%s", err.Error()))
	}
	return wrong
}

func (m *Message) check(at string) (wrong []*fanfare.Error) {
	if m.ConfirmationCodeRegex != "" {
		if _, err := codes.Parse(m.ConfirmationCodeRegex); err != nil {
			wrong = append(wrong, invalid(at+"/confirmationCodeRegex", codes.Hint, "%s", err.Error()))
		}
	}
	if m.From != "" {
		if _, err := mail.ParseAddress(m.From); err != nil {
			wrong = append(wrong, invalid(at+"/from", "set it to an address such as News <news@example.org>", "%.200q is not an address", m.From))
		}
	}
	if len(m.Subject)+len(m.TextBody)+len(m.HTMLBody) > maxTextBytes {
		wrong = append(wrong, invalid(at, "", "the texts are longer than %d bytes", maxTextBytes))
	}
	return wrong
}
