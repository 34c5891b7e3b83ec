package server

import (
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/capture"
	"fanfare.dev/fanfare/internal/registry"
)

// captured is where letters go instead of their relays and receivers, and to whom
// they leave for real all the same.
type captured struct {
	to    string        // smtp://host:port or a folder; "": letters leave, or are suppressed
	allow capture.Allow // nil: there is no such list
}

func newCaptured(to string, allow []string) captured {
	c := captured{to: to}
	if len(allow) > 0 {
		c.allow = capture.NewAllow(allow)
	}
	return c
}

func (c captured) inForce() bool { return c.to != "" || c.allow != nil }

// all reports whether no letter leaves.
func (c captured) all() bool { return c.to != "" && c.allow == nil }

// said is what becomes of letters, in words.
func (c captured) said() string {
	switch {
	case c.allow == nil:
		return "letters are captured and do not leave"
	case c.to != "":
		return "letters leave to allow_recipients alone, all others are captured"
	}
	return "letters leave to allow_recipients alone, all others are suppressed"
}

// refuses reports whether a letter to an address must not leave, and is kept
// nowhere else either.
func (c captured) refuses(to string) bool { return c.to == "" && c.allow != nil && !c.allow.Has(to) }

// notAllowed is what is recorded of such a letter.
const notAllowed = "not in allow_recipients"

// settings are what the outlet of a channel runs on. Where all is captured, what
// would send for real is not even made.
func (c captured) settings(of *registry.Channel, own func(*registry.Channel) (deliver.Settings, error)) (deliver.Settings, error) {
	if c.to == "" {
		return own(of)
	}
	name := of.Service + "/" + of.Name
	instead, err := own(c.channel(of))
	if err != nil {
		return instead, err
	}
	to := instead.Relays[0].Driver
	if c.allow == nil {
		instead.Relays = []deliver.RelaySettings{{Name: "capture " + c.to, Driver: capture.New(name, to), Weight: 1}}
		return instead, nil
	}
	s, err := own(of)
	if err != nil {
		return s, err
	}
	for i := range s.Relays {
		s.Relays[i].Driver = capture.Beside(name, s.Relays[i].Driver, to, c.allow)
	}
	return s, nil
}

// channel is a channel as it would be if it sent to where letters are captured.
func (c captured) channel(of *registry.Channel) *registry.Channel {
	one := *of
	one.Relays, one.Username, one.PasswordEnv, one.PasswordFile = nil, "", "", ""
	if address, ok := strings.CutPrefix(c.to, "smtp://"); ok {
		one.Driver, one.Relay, one.TLS, one.Grouping = "smtp", address, "off", "auto"
	} else {
		one.Driver, one.Path = "file", filepath.Join(c.to, of.Service, of.Name)
	}
	return &one
}
