package registry

import (
	"encoding/json"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/schedule/cadence"
)

// A Topic is a named kind of event. It is never changed: an apply makes a new one.
type Topic struct {
	Service  string
	Name     string
	Number   uint32 // for good
	Title    string
	Lane     fanfare.Lane
	Schema   json.RawMessage // JSON Schema of the event data, or nil: anything goes
	Key      string          // the field of the data that tells whose event it is, as a.b; "" for none
	Series   uint32          // of keys: another one each time the topic takes another field
	Rules    []Rule          // in the order that picks the template
	Template string          // for own filters, and for rules without one; may be ""
	Expiry   time.Duration   // a message that could not leave for so long expires; 0: the channel's
	Quiet    QuietHours      // when nothing is sent, beside those of the channel
	Digest   Digest          // of what waits for a cadence; without a template nothing may wait
	Cadence  cadence.Cadence // of new subscriptions that name none

	Generation Generation // which events have their messages made together

	// ValidateData checks the data of one event against the schema. The error
	// is a *fanfare.Error with Pointer below /data; several in Details.
	ValidateData func(data json.RawMessage) error `json:"-"`

	service uint32                      `json:"-"` // number
	filters *checkedTexts[fanfare.Cost] `json:"-"` // that are good for this schema, and what they cost
	body    *topicBody                  `json:"-"`
}

// A Rule is a condition of the topic that subscriptions choose by name.
type Rule struct {
	Number   uint32            `json:"-"` // for good
	Name     string            `json:"name"`
	When     string            `json:"when"`               // CEL over event and sub
	Params   map[string]string `json:"params,omitempty"`   // name -> string, number, boolean or strings
	Template string            `json:"template,omitempty"` // "" takes the topic's

	Labels // for recipients, who do not see the condition
}

// Labels tell recipients about something in plain words.
type Labels struct {
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
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
	Driver       string     `json:"driver"`                  // smtp, file or webhook
	Title        string     `json:"title,omitempty"`         // for recipients; "" shows the kind of channel
	Relay        string     `json:"relay,omitempty"`         // smtp: host:port of the next hop
	Relays       []Relay    `json:"relays,omitempty"`        // smtp: instead of Relay, where there are several
	Path         string     `json:"path,omitempty"`          // file: the folder to write to
	From         string     `json:"from,omitempty"`          // header From, such as Name <a@example.org>
	Sender       string     `json:"sender,omitempty"`        // envelope sender; "" takes the address of From
	Returns      string     `json:"returns,omitempty"`       // domain of envelope senders that name the delivery; "" takes Sender
	ReplyTo      string     `json:"reply_to,omitempty"`      // header Reply-To
	Connections  int        `json:"connections,omitempty"`   // at once; 50
	Reserve      Reserve    `json:"reserve,omitzero"`        // connections that less urgent lanes leave free
	Rate         Rate       `json:"rate,omitempty"`          // messages over all connections; 30/s
	Adapt        bool       `json:"adapt,omitempty"`         // less at a time, and slower, while answers ask for it
	TLS          string     `json:"tls,omitempty"`           // off, opportunistic, required or implicit
	Username     string     `json:"username,omitempty"`      // AUTH, or ""
	PasswordEnv  string     `json:"password_env,omitempty"`  // name of an environment variable of the server
	PasswordFile string     `json:"password_file,omitempty"` // path on the server
	Hello        string     `json:"hello,omitempty"`         // name in EHLO; "" takes the host's
	SendTimeout  Duration   `json:"send_timeout,omitempty"`  // of one message
	Expiry       Duration   `json:"expiry,omitempty"`        // a message that could not leave for so long expires
	Retry        []Duration `json:"retry,omitempty"`         // waits between attempts, each with jitter
	QuietHours   QuietHours `json:"quiet_hours,omitzero"`    // when nothing is sent
	RetryBy      RetryBy    `json:"retry_by,omitempty"`      // instead, for answers of a class
	Grouping     string     `json:"grouping,omitempty"`      // auto, pipelining or lockstep
	Multicast    int        `json:"multicast,omitempty"`     // recipients of one transaction, where nothing is personal; 0 and 1: none share one
	DKIM         []DKIMKey  `json:"dkim,omitempty"`          // smtp and file: with which mail is signed
	Receipts     Receipts   `json:"receipts,omitzero"`       // smtp: what the provider says of messages over HTTP
	Domain       string     `json:"domain,omitempty"`        // right side of Message-ID; "" takes that of From
	ListID       string     `json:"list_id,omitempty"`       // header List-Id (RFC 2919)

	DailyQuota   DailyQuota          `json:"daily_quota,omitzero"`  // of messages
	Destinations DestinationSettings `json:"destinations,omitzero"` // what goes to one of them

	SecretEnv      string   `json:"secret_env,omitempty"`      // webhook: name of an environment variable of the server
	SecretFile     string   `json:"secret_file,omitempty"`     // webhook: path on the server
	AllowHTTP      bool     `json:"allow_http,omitempty"`      // webhook: take URLs without TLS
	ConnectTimeout Duration `json:"connect_timeout,omitempty"` // webhook: for TCP, and for TLS
}

// Password reads the channel's secret from where its settings say; "" if they
// name no place. It is never stored and never shown.
func (c *Channel) Password() (string, error) {
	return c.secret("password", c.PasswordEnv, c.PasswordFile)
}

// A TemplateSource is one version of a template. It never changes.
type TemplateSource struct {
	Number  uint32 `json:"-"` // for good, over all services; 0 of a draft
	Service string `json:"-"`
	Name    string `json:"-"`
	Version int    `json:"version"` // from 1, within the name
	Made
	TemplateParts
}
