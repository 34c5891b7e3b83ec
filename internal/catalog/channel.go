package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/people/addresskind"
	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// serverSide has the settings of a channel that concern the server's machine: the folder to which
// it writes, the secrets that it reads, and the relays to which they are sent.
type serverSide struct {
	driver, path, passwordEnv, passwordFile, username, relay, tls, secretEnv, secretFile, relays, dkim, receipts string
	url, authorizationEnv, authorizationFile                                                                     string
}

func (c *ChannelSettings) serverSide() serverSide {
	relays := slices.Clone(c.Relays)
	for i := range relays {
		relays[i].Weight = 0 // which is not about the machine
	}
	return serverSide{c.Driver, c.Path, c.PasswordEnv, c.PasswordFile, c.Username, c.Relay, c.TLS, c.SecretEnv, c.SecretFile, fmt.Sprintf("%+v", relays), fmt.Sprintf("%+v", c.DKIM), fmt.Sprintf("%+v", c.Receipts),
		c.URL, c.AuthorizationEnv, c.AuthorizationFile}
}

// CheckOperatorFields refuses a channel with which the admin of one service would get access to
// the server. For example, a relay of the admin would receive any file as a password, even
// admin.key. Settings by the operator may stay; old is nil for a new channel.
func (c *Channel) CheckOperatorFields(old *Channel) error {
	field := ""
	switch {
	case c.Path != "":
		field = "path"
	case c.PasswordFile != "":
		field = "password_file"
	case c.PasswordEnv != "":
		field = "password_env"
	case c.SecretFile != "":
		field = "secret_file"
	case c.SecretEnv != "":
		field = "secret_env"
	case c.AuthorizationFile != "":
		field = "authorization_file"
	case c.AuthorizationEnv != "":
		field = "authorization_env"
	case len(c.DKIM) > 0:
		field = "dkim"
	case c.Receipts != Receipts{}:
		field = "receipts"
	case slices.ContainsFunc(c.Relays, func(r Relay) bool { return r.PasswordFile != "" || r.PasswordEnv != "" }):
		field = "relays"
	}
	if field == "" || old != nil && old.serverSide() == c.serverSide() {
		return nil
	}
	return &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/" + field, Message: field + " gives access to the server's machine: a key for a single service cannot set it, or change the relay of a channel that has it",
		Hint: "use a key for all services; with this key you can only change the other fields of the channel"}
}

// A Channel is a configured outbound route. It is immutable: an apply creates another one.
type Channel struct {
	Number  uint16 // for good
	Service string
	Name    string
	ChannelSettings
}

// ChannelSettings are the settings of a channel in a document. Package document lists the fields
// of each driver.
type ChannelSettings struct {
	Driver       string     `json:"driver"`                  // smtp, file, inbox, webhook, worker or simulate
	Title        string     `json:"title,omitempty"`         // for recipients; "" shows the kind of channel
	Relay        string     `json:"relay,omitempty"`         // smtp: host:port of the next hop
	Relays       []Relay    `json:"relays,omitempty"`        // smtp: instead of Relay, where there are several
	Keep         Duration   `json:"keep,omitempty"`          // inbox: a message is removed so long after its broadcast began; 0: never
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
	Submission   []string   `json:"submission,omitempty"`    // smtp and file: domains whose owners of mailboxes may send mail to anybody
	Domain       string     `json:"domain,omitempty"`        // right side of Message-ID; "" takes that of From
	ListID       string     `json:"list_id,omitempty"`       // header List-Id (RFC 2919)

	DailyQuota   DailyQuota          `json:"daily_quota,omitzero"`  // of messages
	Destinations DestinationSettings `json:"destinations,omitzero"` // what goes to one of them

	SecretEnv      string   `json:"secret_env,omitempty"`      // webhook: name of an environment variable of the server
	SecretFile     string   `json:"secret_file,omitempty"`     // webhook: path on the server
	AllowHTTP      bool     `json:"allow_http,omitempty"`      // webhook: take URLs without TLS
	ConnectTimeout Duration `json:"connect_timeout,omitempty"` // webhook: for TCP, and for TLS

	URL               string `json:"url,omitempty"`                // webhook: the receiver of all messages; required with addresses: phone
	AuthorizationEnv  string `json:"authorization_env,omitempty"`  // webhook with url: name of an environment variable of the server
	AuthorizationFile string `json:"authorization_file,omitempty"` // webhook with url: path on the server

	Worker    string `json:"worker,omitempty"`    // worker: the name of the worker that delivers
	Addresses string `json:"addresses,omitempty"` // worker: mail or url; webhook: "" (url) or phone
	Batch     int    `json:"batch,omitempty"`     // worker: messages in a request
}

// A DKIMKey is one of the DKIM keys of a channel. For each domain and algorithm, the newest key
// that is allowed to sign is used.
type DKIMKey struct {
	Domain   string    `json:"domain"`   // d=, in lower case
	Selector string    `json:"selector"` // s=
	KeyEnv   string    `json:"key_env,omitempty"`
	KeyFile  string    `json:"key_file,omitempty"`
	From     time.Time `json:"from,omitzero"` // it signs nothing before

	WaitForDNS bool `json:"wait_for_dns,omitempty"` // nor before its record is in the DNS
}

// KeyText reads the private key from its environment variable or file. It is never stored or
// shown.
func (c *Channel) KeyText(k *DKIMKey) (string, error) {
	return c.secret("key", k.KeyEnv, k.KeyFile)
}

// DestinationSettings limit the load on each destination: the domain of an address, or the host
// and port of a URL.
type DestinationSettings struct {
	Rate        Rate                           `json:"rate,omitzero"`         // messages to one; unlimited
	Connections int                            `json:"connections,omitempty"` // messages under way to one; 0: as many as it takes
	By          string                         `json:"by,omitempty"`          // ByMX: domains whose mail goes to one organisation are one; "": each is its own
	Only        map[string]DestinationSettings `json:"only,omitempty"`        // by name, what is other than for each
}

// ByMX groups domains by the organization that runs their mail exchangers.
const ByMX = "mx"

// A DailyQuota is the maximum number of messages on one day. The zero value is no limit.
type DailyQuota struct {
	Messages int64  `json:"messages"`
	Zone     string `json:"zone,omitempty"` // in which days begin; "" is UTC
}

// QuietHours is the time of day, in the recipient's time zone, during which nothing is sent.
type QuietHours struct {
	From   string   `json:"from"`             // time of day, such as 21:00
	To     string   `json:"to"`               // such as 08:00, to 24:00; it may be the next day
	Days   []string `json:"days,omitempty"`   // on which they begin, such as fri; none: all
	Zone   string   `json:"zone,omitempty"`   // of whom none is known; "" is UTC
	Spread Duration `json:"spread,omitempty"` // over which what has waited is sent
	Urgent bool     `json:"urgent,omitempty"` // the urgent lane waits too
}

// IsZero reports whether there are no quiet hours.
func (q QuietHours) IsZero() bool { return q.From == "" }

// Compile returns the hours in the form used for look-ups.
func (q QuietHours) Compile() (c quiethours.Quiet, err error) {
	if c.From, err = quiethours.ParseClock(q.From); err != nil {
		return c, err
	}
	if c.To, err = quiethours.ParseClock(q.To); err != nil {
		return c, err
	}
	for _, name := range q.Days {
		day, err := quiethours.ParseDay(name)
		if err != nil {
			return c, err
		}
		c.Days[day] = true
	}
	return c, nil
}

// Receipts describe how a provider reports the outcome of messages over HTTP, and how it signs
// that.
type Receipts struct {
	Form       string `json:"form"` // standard or mailgun
	SecretEnv  string `json:"secret_env,omitempty"`
	SecretFile string `json:"secret_file,omitempty"`
}

// ReceiptForms are the names of those of package returns.
var ReceiptForms = []string{"standard", "mailgun"}

// ReceiptSecrets reads the secrets that verify receipts. They are never stored or shown.
func (c *Channel) ReceiptSecrets() (string, error) {
	return c.secret("secret", c.Receipts.SecretEnv, c.Receipts.SecretFile)
}

// A Share is a part of something as people write it: 10%. "" is the usual one.
type Share string

// Of returns the share as a number from 0 to 1.
func (s Share) Of(usual float64) float64 {
	if percent, err := strconv.Atoi(strings.TrimSuffix(string(s), "%")); err == nil {
		return float64(percent) / 100
	}
	return usual
}

// A Reserve is the share of a channel's connections that less urgent lanes leave free.
type Reserve struct {
	Urgent Share `json:"urgent,omitempty"` // for the urgent lane alone; 5%
	Normal Share `json:"normal,omitempty"` // besides, for the urgent and the normal lane; 5%
}

const (
	// defaultReserve is the share of a lane for which the document names none.
	defaultReserve = 0.05
	// MaxReserve is the most that may be reserved in all, in percent.
	MaxReserve = 90
)

// Shares returns the share reserved for the urgent lane, and the share reserved for the urgent and
// normal lanes together, from 0 to 1.
func (r Reserve) Shares() (urgent, normal float64) {
	return r.Urgent.Of(defaultReserve), r.Normal.Of(defaultReserve)
}

// RetryBy has the retry schedules by class of reply.
type RetryBy map[fanfare.Class][]Duration

// Secrets reads the signing secrets of a channel. They are never stored or shown.
func (c *Channel) Secrets() (string, error) { return c.secret("secret", c.SecretEnv, c.SecretFile) }

// Authorization reads the header field Authorization of the requests to URL, or "". It is never
// stored or shown.
func (c *Channel) Authorization() (string, error) {
	return c.secret("authorization", c.AuthorizationEnv, c.AuthorizationFile)
}

// secret reads a secret from an environment variable, or else a file.
func (c *Channel) secret(what, env, path string) (string, error) {
	switch {
	case env != "":
		secret, ok := os.LookupEnv(env)
		if !ok {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": environment variable " + env + " is not set",
				Hint:    "set the variable in the environment of the server, and restart the server"}
		}
		return secret, nil
	case path != "":
		b, err := os.ReadFile(path)
		if err != nil {
			return "", &fanfare.Error{Code: fanfare.Unavailable,
				Message: "channel " + c.Service + "/" + c.Name + ": cannot read " + what + "_file " + path + ": " + fileReason(err),
				Hint:    "make sure that the file exists on the server's machine and that the server can read it"}
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return "", nil
}

// fileReason returns why a file cannot be read, without its path.
func fileReason(err error) string {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		err = of.Err
	}
	return err.Error()
}

// DriverSimulate is the driver of channels that deliver nothing.
const DriverSimulate = "simulate"

// SendsDocuments reports whether the messages of a channel are JSON documents, and not mails.
func (c *ChannelSettings) SendsDocuments() bool {
	return c.Driver == "webhook" || c.Driver == "worker" && c.Addresses == "url" || c.SendsTexts()
}

// SendsMail reports whether the messages of a channel are mails to mail addresses.
func (c *ChannelSettings) SendsMail() bool { return c.AddressKind() == addresskind.Mail }

// SendsTexts reports whether the messages of a channel are texts to phone numbers.
func (c *ChannelSettings) SendsTexts() bool {
	return (c.Driver == "webhook" || c.Driver == DriverSimulate) && c.Addresses == addresskind.Names[addresskind.Phone]
}

// AddressKind returns the kind of the addresses that a channel sends to, 0 for an unknown driver.
func (c *ChannelSettings) AddressKind() uint8 {
	switch {
	case c.SendsTexts():
		return addresskind.Phone
	case c.SendsDocuments():
		return addresskind.URL
	case slices.Contains([]string{"smtp", "file", "inbox", "worker", DriverSimulate}, c.Driver):
		return addresskind.Mail
	}
	return 0
}

// AddressKindName returns the name of the kind of the addresses that a channel sends to.
func (c *ChannelSettings) AddressKindName() string { return addresskind.Names[c.AddressKind()] }

// CheckAddress refuses an address to which the channel does not send.
func (c *Channel) CheckAddress(address string) error {
	if c.AddressKind() == addresskind.URL && c.URL != "" && address != c.URL {
		return inputerror.Invalid("/to", "send to "+c.URL+", or use another channel", "channel %s has one receiver, and the address is another", c.Name)
	}
	if c.AddressKind() == addresskind.URL && !c.AllowHTTP && strings.HasPrefix(address, "http://") {
		return inputerror.Invalid("/to", "use an https URL, or set allow_http for channel "+c.Name, "the URL does not use https")
	}
	return nil
}

// A Relay is one of several next hops of a channel. Its empty fields take the values of the
// channel, except username and password.
type Relay struct {
	Name         string `json:"name,omitempty"` // unique within the channel; "" takes Relay
	Relay        string `json:"relay"`          // host:port
	Weight       int    `json:"weight"`         // its share, against the weights of the others; 0: nothing leaves by it
	TLS          string `json:"tls,omitempty"`
	Username     string `json:"username,omitempty"`
	PasswordEnv  string `json:"password_env,omitempty"`
	PasswordFile string `json:"password_file,omitempty"`
	Hello        string `json:"hello,omitempty"`
	Grouping     string `json:"grouping,omitempty"`
}

// DisplayName returns the name of the relay.
func (r *Relay) DisplayName() string {
	if r.Name == "" {
		return r.Relay
	}
	return r.Name
}

// A Hop is a next hop of a channel: the channel with the settings of one relay.
type Hop struct {
	Name    string
	Weight  int
	Channel *Channel
}

// Hops lists the next hops of a channel, at least one.
func (c *Channel) Hops() []Hop {
	if len(c.Relays) == 0 {
		return []Hop{{c.Relay, 1, c}}
	}
	hops := make([]Hop, len(c.Relays))
	for i := range c.Relays {
		r := &c.Relays[i]
		one := *c
		one.Relays, one.Relay = nil, r.Relay
		one.Username, one.PasswordEnv, one.PasswordFile = r.Username, r.PasswordEnv, r.PasswordFile
		one.TLS = r.TLS
		if one.TLS == "" {
			one.TLS = c.TLS
		}
		if r.Hello != "" {
			one.Hello = r.Hello
		}
		if r.Grouping != "" {
			one.Grouping = r.Grouping
		}
		hops[i] = Hop{r.DisplayName(), r.Weight, &one}
	}
	return hops
}

// HasHop reports whether the channel has a next hop with that name.
func (c *Channel) HasHop(name string) bool {
	return slices.ContainsFunc(c.Hops(), func(h Hop) bool { return h.Name == name })
}

// RelayScope returns the scope of a relay for pauses.
func RelayScope(c *Channel, relay string) fanfare.Scope {
	return fanfare.Scope{Kind: fanfare.ScopeRelay, Name: c.Service + "/" + c.Name + "/" + relay}
}

// MarshalJSON returns the form of documents.
func (q DailyQuota) MarshalJSON() ([]byte, error) {
	if q == (DailyQuota{}) {
		return json.Marshal(Unlimited)
	}
	type plain DailyQuota
	return json.Marshal(plain(q))
}
