package wire

import (
	"encoding/json"
	"time"
)

// A Service is a tenant: it owns topics, subscribers, templates, channels and keys.
type Service struct {
	Name  string `json:"name,omitempty" doc:"a to z, 0 to 9 and _ . -, at most 64 characters; may be omitted if the path has it"`
	Title string `json:"title,omitempty" maxLength:"512" doc:"for people"`

	MatchingBudget string `json:"matching_budget,omitempty" doc:"what one event may take in conditions to which no index leads, such as 500us; at most 100ms, without: 1ms"`

	HoldAbove        int  `json:"hold_above,omitempty" minimum:"1" maximum:"1000000000" doc:"a broadcast of more messages waits for approval; default: none waits. A topic may override it"`
	HoldExemptUrgent bool `json:"hold_exempt_urgent,omitempty" doc:"those of the lane urgent do not wait"`

	Rate       string      `json:"rate,omitempty" doc:"rate limit of all its channels together: 20/s, 1000/min or unlimited"`
	DailyQuota *DailyQuota `json:"daily_quota,omitempty" doc:"of messages of all its channels together; a request may give the number alone"`
	Bounces    *Bounces    `json:"bounces,omitempty" doc:"after which bounces it gives an address up; a rule that is left out is the default"`

	Pages *Pages `json:"pages,omitempty" doc:"look and texts of the recipient pages"`

	SubscriberSchema json.RawMessage `json:"subscriber_schema,omitempty" doc:"JSON Schema of the attributes of its subscribers; default: any object"`
}

// A Topic is a named kind of event.
type Topic struct {
	Name             string          `json:"name,omitempty" doc:"may be omitted if the path has it"`
	Title            string          `json:"title,omitempty" doc:"for people"`
	Lane             string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"lane of its messages; default: normal"`
	Schema           json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the events' data; default: any data"`
	Key              string          `json:"key,omitempty" doc:"the field of the data that tells whose event it is, such as symbol or quote.symbol; then crosses(event.price, level) compares with the last event of the same key"`
	Template         string          `json:"template,omitempty" doc:"for own filters, and for rules without one"`
	Expiry           string          `json:"expiry,omitempty" doc:"a message that could not leave for so long expires, such as 2h; without: the channel's"`
	HoldAbove        int             `json:"hold_above,omitempty" minimum:"1" maximum:"1000000000" doc:"a broadcast of more messages waits for approval; default: the setting of the service"`
	HoldExemptUrgent bool            `json:"hold_exempt_urgent,omitempty" doc:"with hold_above: those of the lane urgent do not wait"`

	QuietHours *QuietHours `json:"quiet_hours,omitempty" doc:"when nothing is sent, beside those of the channel"`
	Generation string      `json:"generation,omitempty" doc:"which events have their messages made together: continuous, those that wait when it is their turn; per_change, each by itself; or a window of 1s to 10s, at whose end those of it are; continuous"`
	Digest     *Digest     `json:"digest,omitempty" doc:"how what waits for a cadence is told together; without: every subscription is immediate"`
	Cadence    string      `json:"cadence,omitempty" doc:"of new subscriptions that name none, such as daily 08:00; immediate"`

	Signup *Signup `json:"signup,omitempty" doc:"how people subscribe by themselves; default: they cannot. A request may also give true"`

	Rules []Rule `json:"rules,omitempty" doc:"in the order that picks the template; where they are left out of a change they stay"`
}

// QuietHours is hours in which nothing is sent to people, in their own time zone.
type QuietHours struct {
	From   string   `json:"from" doc:"time of day, such as 21:00"`
	To     string   `json:"to" doc:"such as 08:00, to 24:00; it may be the next day"`
	Days   []string `json:"days,omitempty" doc:"days on which they begin: mon to sun; default: all"`
	Zone   string   `json:"zone,omitempty" doc:"time zone of people whose own is not known; default: UTC"`
	Spread string   `json:"spread,omitempty" doc:"over which what has waited is sent; 5m"`
	Urgent bool     `json:"urgent,omitempty" doc:"the urgent lane waits too"`
}

// Digest says how what waits for a cadence is told together.
type Digest struct {
	Template string `json:"template" doc:"of the message that tells of several events: it reads items in place of event"`
	Key      string `json:"key,omitempty" doc:"field of the data, such as content_id: of the events with one value of it the newest is told; without: all are"`
	Max      int    `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"events that one message tells of; of more the newest, and how many are left out; 50"`
}

// A Rule is a condition of a topic that subscriptions choose by name.
type Rule struct {
	Name     string            `json:"name,omitempty" doc:"may be omitted if the path has it"`
	When     string            `json:"when" doc:"CEL over event and sub, such as event.mag >= sub.min_mag"`
	Params   map[string]string `json:"params,omitempty" doc:"what a subscription has to give: name and type, which is string, number, boolean or strings"`
	Template string            `json:"template,omitempty" doc:"template of its messages; default: the topic's"`

	Title       string `json:"title,omitempty" minLength:"1" maxLength:"100" doc:"for recipients: pages and mails show it, and never the condition; without: the name in words where people choose a rule, and else the topic's title"`
	Description string `json:"description,omitempty" minLength:"1" maxLength:"500" doc:"for recipients, below the title"`
}

// A Template is a version of how a message is written. Every change makes a new one.
// Members that the server sets are ignored in a request, except note.
type Template struct {
	Name    string    `json:"name,omitempty" doc:"may be omitted if the path has it"`
	Version int       `json:"version,omitempty" doc:"from 1; made by the server, and ignored in a request"`
	State   string    `json:"state,omitempty" enum:"draft,published,earlier" doc:"draft: nobody is written to with it; published: messages are written with it; earlier: they were"`
	Base    int       `json:"base,omitempty" doc:"of a draft: the version that was published when it was kept"`
	At      time.Time `json:"at,omitzero" doc:"when it became so: when the draft was kept, or when the version was published last"`
	Key     string    `json:"key,omitempty" doc:"id of the key that made it so"`
	KeyName string    `json:"key_name,omitempty" doc:"as it was then"`
	Note    string    `json:"note,omitempty" maxLength:"512" doc:"reason, in one line"`
	TemplateParts
}

// A Publication says what of a template is to be published.
type Publication struct {
	Version int    `json:"version,omitempty" minimum:"0" doc:"the draft's, or an earlier one to go back to; without it, or 0: the draft's"`
	Note    string `json:"note,omitempty" maxLength:"512" doc:"reason, in one line; default: the note of the draft"`
}

// A TemplateDiff is what differs between two versions of a template.
type TemplateDiff struct {
	Template string     `json:"template" doc:"its name"`
	From     VersionRef `json:"from"`
	To       VersionRef `json:"to"`
	Parts    []PartDiff `json:"parts" doc:"those that differ; none: they say the same"`
}

// A VersionRef names a version.
type VersionRef struct {
	Version int    `json:"version" doc:"0: nothing, before the first one"`
	State   string `json:"state,omitempty" enum:"draft,published,earlier" doc:"what it is now"`
}

// A PartDiff is how one part of a template differs.
type PartDiff struct {
	Part string `json:"part" doc:"such as subject, html, locales/cy/text or partials/head"`
	Diff string `json:"diff" doc:"unified, as diff -u writes it"`
}

// TemplateParts is what a template says, which is Liquid.
type TemplateParts struct {
	Subject string `json:"subject,omitempty" doc:"required for mail"`
	Text    string `json:"text,omitempty" doc:"plain text; default: made from the HTML"`
	HTML    string `json:"html,omitempty" doc:"values are escaped"`
	JSON    string `json:"json,omitempty" doc:"what webhooks post instead of their own document"`

	Markdown string `json:"markdown,omitempty" doc:"in place of html, which is made of it"`
	Syntax   string `json:"syntax,omitempty" enum:"liquid,notify" doc:"notify: ((name)) and ((flag??text)), as GOV.UK Notify has them"`
	Layout   string `json:"layout,omitempty" doc:"the frame around the HTML: layout: plain has a link to unsubscribe, layout: letter has none; absent: the HTML is complete"`
	Lang     string `json:"lang,omitempty" doc:"the language that it is written in, such as cy, or an output that tells it: {{ event.locale }}; en"`
	Page     string `json:"page,omitempty" doc:"a layout of its own, in HTML: {{ content }}, {{ title }}, {{ lang }} and {{ dir }} are put in"`

	Partials map[string]string `json:"partials,omitempty" doc:"what {% render %} puts in, by name"`

	TemplateFiles
	TemplateVariants
}

// ChannelSettings is a channel as it is configured. A password is never shown and
// never sent: the server reads it from where password_env or password_file say.
type ChannelSettings struct {
	Name         string   `json:"name,omitempty" doc:"may be omitted if the path has it"`
	Driver       string   `json:"driver" doc:"smtp, file or webhook"`
	Title        string   `json:"title,omitempty" minLength:"1" maxLength:"100" doc:"name that recipients see when they choose a channel; default: Email or Webhook"`
	Relay        string   `json:"relay,omitempty" doc:"smtp: host:port of the next hop"`
	Relays       []Relay  `json:"relays,omitempty" doc:"smtp: instead of relay, where there are several"`
	Path         string   `json:"path,omitempty" doc:"file: the folder to write to"`
	From         string   `json:"from,omitempty" doc:"header From, such as News <news@example.org>"`
	Sender       string   `json:"sender,omitempty" doc:"envelope sender; default: the address of from"`
	Returns      string   `json:"returns,omitempty" doc:"domain of envelope senders that tell of which delivery a bounce is, such as bounces.example.org; without: sender"`
	ReplyTo      string   `json:"reply_to,omitempty" doc:"header Reply-To"`
	Connections  int      `json:"connections,omitempty" doc:"at once"`
	Reserve      *Reserve `json:"reserve,omitempty" doc:"connections that less urgent lanes leave free"`
	Rate         string   `json:"rate,omitempty" doc:"over all connections: 30/s, 1000/min, 5000/h or unlimited"`
	Adapt        bool     `json:"adapt,omitempty" doc:"less at a time, and slower, while answers ask for it"`
	TLS          string   `json:"tls,omitempty" doc:"off, opportunistic, required or implicit"`
	Username     string   `json:"username,omitempty" doc:"for AUTH"`
	PasswordEnv  string   `json:"password_env,omitempty" doc:"name of an environment variable of the server"`
	PasswordFile string   `json:"password_file,omitempty" doc:"path on the server"`
	Hello        string   `json:"hello,omitempty" doc:"name in EHLO; default: the host's"`
	SendTimeout  string   `json:"send_timeout,omitempty" doc:"of one message, such as 2m"`
	Expiry       string   `json:"expiry,omitempty" doc:"a message that could not leave for so long expires"`
	Retry        []string `json:"retry,omitempty" doc:"waits between attempts, each with jitter"`
	Grouping     string   `json:"grouping,omitempty" doc:"auto, pipelining or lockstep"`
	Multicast    int      `json:"multicast,omitempty" doc:"smtp: recipients of one transaction, where nothing in the message is personal, and as many as the rate allows in a second at most; without: each has a message of his own"`
	Domain       string   `json:"domain,omitempty" doc:"right side of Message-ID; default: the domain of from"`
	ListID       string   `json:"list_id,omitempty" doc:"header List-Id (RFC 2919)"`

	Receipts *Receipts `json:"receipts,omitempty" doc:"smtp: how the provider tells over HTTP what became of messages; POST /receipts/{service}/{channel} takes it"`

	DKIM []DKIMKey `json:"dkim,omitempty" doc:"smtp and file: keys that mail is signed with; of those of one domain and algorithm the newest signs"`

	DailyQuota   *DailyQuota          `json:"daily_quota,omitempty" doc:"of messages; a request may give the number alone"`
	Destinations *DestinationSettings `json:"destinations,omitempty" doc:"limits for one domain, or host and port"`

	SecretEnv      string `json:"secret_env,omitempty" doc:"webhook: name of an environment variable of the server with what requests are signed with"`
	SecretFile     string `json:"secret_file,omitempty" doc:"webhook: path on the server, instead; without both, the server signs with a key of its own"`
	AllowHTTP      bool   `json:"allow_http,omitempty" doc:"webhook: take URLs without TLS"`
	ConnectTimeout string `json:"connect_timeout,omitempty" doc:"webhook: for TCP, and again for TLS"`

	QuietHours *QuietHours `json:"quiet_hours,omitempty" doc:"hours in which nothing is sent to people, in their own time zone"`

	RetryBy map[string][]string `json:"retry_by,omitempty" doc:"waits for answers of a class: throttled, greylisted, full, busy, network, blocked, invalid, content or denied"`
}

// Receipts say how the provider behind a channel tells what became of messages. The
// secret itself is never shown and never sent.
type Receipts struct {
	Form       string `json:"form" enum:"standard,mailgun" doc:"of the documents and their signature"`
	SecretEnv  string `json:"secret_env,omitempty" doc:"name of an environment variable of the server with what they are signed with"`
	SecretFile string `json:"secret_file,omitempty" doc:"path on the server, instead"`
}

// A DKIMKey is a private key that mail is signed with (RFC 6376). The key itself is
// never shown and never sent.
type DKIMKey struct {
	Domain   string `json:"domain" doc:"that signs: of from, or one above it"`
	Selector string `json:"selector" doc:"the public key stands in the DNS at selector._domainkey.domain"`
	KeyEnv   string `json:"key_env,omitempty" doc:"name of an environment variable of the server with the key"`
	KeyFile  string `json:"key_file,omitempty" doc:"path on the server, instead"`
	From     string `json:"from,omitempty" doc:"a time or a day before which it signs nothing, such as 2026-11-20T08:00:00Z"`

	WaitForDNS bool `json:"wait_for_dns,omitempty" doc:"it signs nothing either before the server has seen its record in the DNS; until then the key before it signs"`
}

// Bounces are the rules by which a service gives addresses up.
type Bounces struct {
	Unknown   *BounceRule `json:"unknown,omitempty" doc:"status and words both say that there is no such mailbox; without: the first"`
	Hard      *BounceRule `json:"hard,omitempty" doc:"one of the two says so, or the domain is none; without: 3 within 30 days"`
	Soft      *BounceRule `json:"soft,omitempty" doc:"it came to nothing for a reason that is not the sender; without: 7 within 14 days, over 4 days at least, for 90 days"`
	Full      *BounceRule `json:"full,omitempty" doc:"the mailbox is full; default: 7 within 60 days, over 30 days at least, for 90 days"`
	Complaint *BounceRule `json:"complaint,omitempty" doc:"a reader reported it as spam; default: the first"`
}

// A BounceRule gives an address up.
type BounceRule struct {
	After      int  `json:"after,omitempty" minimum:"1" maximum:"100" doc:"so many messages that came back"`
	WithinDays int  `json:"within_days,omitempty" minimum:"1" maximum:"180" doc:"so many days; 30"`
	OverDays   int  `json:"over_days,omitempty" minimum:"0" maximum:"180" doc:"the last of them so many days behind the first; without: they may come at once"`
	ForDays    int  `json:"for_days,omitempty" minimum:"1" maximum:"3650" doc:"for so long; without: for good"`
	Never      bool `json:"never,omitempty" doc:"instead of all that: nobody is given up"`
}

// A DailyQuota is how many messages may leave on one day.
type DailyQuota struct {
	Messages int64  `json:"messages" doc:"1 to 1000000000"`
	Zone     string `json:"zone,omitempty" doc:"time zone in which days begin, such as Europe/London; default: UTC"`
}

// DestinationSettings bound what a channel sends to each destination.
type DestinationSettings struct {
	Rate        string                      `json:"rate,omitempty" doc:"to one: 20/s, 1000/min or unlimited"`
	Connections int                         `json:"connections,omitempty" doc:"concurrent messages to one destination; default: no limit of its own"`
	By          string                      `json:"by,omitempty" enum:"domain,mx" doc:"what one destination is: a domain, or with mx all domains whose mail exchangers are one organisation's; of smtp alone"`
	Only        map[string]DestinationLimit `json:"only,omitempty" doc:"by domain, or host and port: what is other than for each"`
}

// DestinationLimit bounds what a channel sends to one destination.
type DestinationLimit struct {
	Rate        string `json:"rate,omitempty" doc:"20/s, 1000/min or unlimited"`
	Connections int    `json:"connections,omitempty" doc:"messages under way"`
}

// Reserve is the part of a channel's connections that less urgent lanes leave free.
type Reserve struct {
	Urgent string `json:"urgent,omitempty" doc:"reserved for the urgent lane alone, such as 10%; default: 5%"`
	Normal string `json:"normal,omitempty" doc:"also reserved for the urgent and the normal lane, such as 10%; default: 5%"`
}

// A Relay is one of several next hops of a channel. Settings that it omits
// are those of the channel, except name and password.
type Relay struct {
	Name         string `json:"name,omitempty" doc:"unique within the channel; default: the value of relay"`
	Relay        string `json:"relay" doc:"host:port"`
	Weight       int    `json:"weight" minimum:"0" maximum:"1000" doc:"its share of the connections, against the weights of the others; 0: nothing leaves by it"`
	TLS          string `json:"tls,omitempty" doc:"off, opportunistic, required or implicit"`
	Username     string `json:"username,omitempty" doc:"for AUTH"`
	PasswordEnv  string `json:"password_env,omitempty" doc:"name of an environment variable of the server"`
	PasswordFile string `json:"password_file,omitempty" doc:"path on the server"`
	Hello        string `json:"hello,omitempty" doc:"name in EHLO"`
	Grouping     string `json:"grouping,omitempty" doc:"auto, pipelining or lockstep"`
}

// ServicePage is a part of the services, by name.
type ServicePage struct {
	Services []Service `json:"services" doc:"by name"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TopicPage is a part of the topics, by name.
type TopicPage struct {
	Topics []Topic `json:"topics" doc:"by name"`
	Next   string  `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// RulePage is a part of the rules of a topic, in their order.
type RulePage struct {
	Rules []Rule `json:"rules" doc:"in the order that picks the template"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TemplatePage is a part of the templates, by name, or of the versions of one,
// the oldest first.
type TemplatePage struct {
	Templates []Template `json:"templates" doc:"by name, or from the oldest version"`
	Next      string     `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// ChannelPage is a part of the channels, by name.
type ChannelPage struct {
	Channels []ChannelSettings `json:"channels" doc:"by name"`
	Next     string            `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
