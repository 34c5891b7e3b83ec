package channels

import (
	"errors"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkimkeys"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/capture"
)

// Capture specifies where a staging server sends messages instead of to their relays and receivers. The
// zero Capture captures nothing.
type Capture struct {
	To    string        // smtp://host:port or a folder; "": messages are sent or suppressed
	allow capture.Allow // the recipients to whom messages are still sent; nil: there is no list
}

// NewCapture returns the Capture of the settings capture and allow_recipients.
func NewCapture(to string, allow []string) Capture {
	c := Capture{To: to}
	if len(allow) > 0 {
		c.allow = capture.NewAllow(allow)
	}
	return c
}

// Folder returns the folder of captured messages, "" if they are sent to a server or not captured.
func (c Capture) Folder() string {
	if strings.Contains(c.To, "://") {
		return ""
	}
	return c.To
}

// InForce reports whether some messages are not sent.
func (c Capture) InForce() bool { return c.To != "" || c.allow != nil }

// Allowed counts the entries of allow_recipients.
func (c Capture) Allowed() int { return len(c.allow) }

// all reports whether no message is sent.
func (c Capture) all() bool { return c.To != "" && c.allow == nil }

func (c Capture) describe() string {
	switch {
	case c.allow == nil:
		return "all messages are captured and none are sent"
	case c.To != "":
		return "only messages to allow_recipients are sent; all others are captured"
	}
	return "only messages to allow_recipients are sent; all others are suppressed"
}

// Refuses reports whether a message to an address must be neither sent nor captured.
func (c Capture) Refuses(to string) bool { return c.To == "" && c.allow != nil && !c.allow.Has(to) }

// settings returns the settings of a channel's sender, based on those that build returns. If all
// messages are captured, the usual driver is not created.
func (c Capture) settings(conf *catalog.Channel, build func(*catalog.Channel) (deliver.Settings, error)) (deliver.Settings, error) {
	if c.To == "" {
		return build(conf)
	}
	name := conf.Service + "/" + conf.Name
	captured, err := build(c.channel(conf))
	if err != nil {
		return captured, err
	}
	to := captured.Relays[0].Driver
	if c.allow == nil {
		captured.Relays = []deliver.RelaySettings{{Name: "capture " + c.To, Driver: capture.New(name, to), Weight: 1}}
		return captured, nil
	}
	s, err := build(conf)
	if err != nil {
		return s, err
	}
	for i := range s.Relays {
		s.Relays[i].Driver = capture.NewSelective(name, s.Relays[i].Driver, to, c.allow)
	}
	return s, nil
}

// channel returns a channel as if it sent to the destination of captured messages.
func (c Capture) channel(conf *catalog.Channel) *catalog.Channel {
	one := *conf
	one.Relays, one.Username, one.PasswordEnv, one.PasswordFile = nil, "", "", ""
	if address, ok := strings.CutPrefix(c.To, "smtp://"); ok {
		one.Driver, one.Relay, one.TLS, one.Grouping = "smtp", address, "off", "auto"
	} else {
		one.Driver, one.Path = "file", filepath.Join(c.To, conf.Service, conf.Name)
	}
	return &one
}

// keys reads the keys with which a channel signs. Captured messages are not signed, so a
// staging server needs no keys.
func (c Capture) keys(conf *catalog.Channel) []dkimkeys.Read {
	if c.all() {
		return nil
	}
	return dkimkeys.ReadAll(conf)
}

// CheckKey returns why a key that is configured for a channel cannot be used.
func (c Capture) CheckKey(conf *catalog.Channel, key *catalog.DKIMKey) error {
	if c.all() {
		return nil
	}
	_, err := dkimkeys.ReadOne(conf, key)
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		wrong := *e
		wrong.Code = fanfare.Invalid // an error of the document: the key can be put there first
		return &wrong
	}
	return err
}
