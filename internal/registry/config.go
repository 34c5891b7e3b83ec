package registry

import (
	"encoding/json"
	"os"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Topic is a named kind of event. It is never changed: an apply makes a new one.
type Topic struct {
	Service  string
	Name     string
	Number   uint32 // for good
	Title    string
	Lane     fanfare.Lane
	Schema   json.RawMessage // JSON Schema of the event data, or nil: anything goes
	Rules    []Rule          // in the order that picks the template
	Template string          // for own filters, and for rules without one; may be ""
	Expiry   time.Duration   // a message that could not leave for so long expires; 0: the channel's

	// ValidateData checks the data of one event against the schema. The error
	// is a *fanfare.Error with Pointer below /data; several in Details.
	ValidateData func(data json.RawMessage) error `json:"-"`

	topicState
}

// A Rule is a condition of the topic that subscriptions choose by name.
type Rule struct {
	Number   uint32            `json:"-"` // for good
	Name     string            `json:"name"`
	When     string            `json:"when"`               // CEL over event and sub
	Params   map[string]string `json:"params,omitempty"`   // name -> string, number, boolean or strings
	Template string            `json:"template,omitempty"` // "" takes the topic's
}

// A Channel is a configured way out. It is never changed: an apply makes a new one.
type Channel struct {
	Number  uint16 // for good
	Service string
	Name    string
	ChannelSettings
}

// ChannelSettings is what an apply document says about a channel. Which fields
// a driver knows is in drivers (document_channel.go).
type ChannelSettings struct {
	Driver       string     `json:"driver"`                  // smtp or file
	Relay        string     `json:"relay,omitempty"`         // smtp: host:port of the next hop
	Path         string     `json:"path,omitempty"`          // file: the folder to write to
	From         string     `json:"from,omitempty"`          // header From, such as Name <a@example.org>
	Sender       string     `json:"sender,omitempty"`        // envelope sender; "" takes the address of From
	ReplyTo      string     `json:"reply_to,omitempty"`      // header Reply-To
	Connections  int        `json:"connections,omitempty"`   // at once; 50
	Rate         Rate       `json:"rate,omitempty"`          // messages over all connections; 30/s
	TLS          string     `json:"tls,omitempty"`           // off, opportunistic, required or implicit
	Username     string     `json:"username,omitempty"`      // AUTH, or ""
	PasswordEnv  string     `json:"password_env,omitempty"`  // name of an environment variable of the server
	PasswordFile string     `json:"password_file,omitempty"` // path on the server
	Hello        string     `json:"hello,omitempty"`         // name in EHLO; "" takes the host's
	SendTimeout  Duration   `json:"send_timeout,omitempty"`  // of one message
	Expiry       Duration   `json:"expiry,omitempty"`        // a message that could not leave for so long expires
	Retry        []Duration `json:"retry,omitempty"`         // waits between attempts, each with jitter
	Grouping     string     `json:"grouping,omitempty"`      // auto, pipelining or lockstep
	Domain       string     `json:"domain,omitempty"`        // right side of Message-ID; "" takes that of From
	ListID       string     `json:"list_id,omitempty"`       // header List-Id (RFC 2919)
}

// Password reads the channel's secret from where its settings say; "" if they
// name no place. It is never stored and never shown.
func (c *Channel) Password() (string, error) {
	switch {
	case c.PasswordEnv != "":
		secret, ok := os.LookupEnv(c.PasswordEnv)
		if !ok {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": environment variable " + c.PasswordEnv + " is not set",
				Hint:    "set it for the server and start it again"}
		}
		return secret, nil
	case c.PasswordFile != "":
		b, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": cannot read password_file " + c.PasswordFile,
				Hint:    "the file must exist on the server and be readable by it"}
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return "", nil
}

// A TemplateSource is one version of a template. It never changes.
type TemplateSource struct {
	Number  uint32 `json:"-"` // for good, over all services
	Service string `json:"-"`
	Name    string `json:"-"`
	Version int    `json:"version"` // from 1, within the name
	Subject string `json:"subject"`
	Text    string `json:"text"`
	HTML    string `json:"html,omitempty"`
}
