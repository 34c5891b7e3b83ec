package wire

import (
	"encoding/json"
	"time"
)

// A Service is a tenant: it owns topics, subscribers, templates, channels and keys.
type Service struct {
	Name  string `json:"name,omitempty" doc:"a to z, 0 to 9 and _ . -, at most 64 characters; can be omitted if the path contains it"`
	Title string `json:"title,omitempty" maxLength:"512" doc:"display name"`

	MatchingBudget string `json:"matching_budget,omitempty" doc:"limit for the cost per event of all conditions that no index covers, such as 500us; at most 100ms, default: 1ms"`

	HoldAbove        int    `json:"hold_above,omitempty" minimum:"1" maximum:"1000000000" doc:"broadcasts with more messages wait for approval; default: none wait. A topic can override it"`
	SendApproval     string `json:"send_approval,omitempty" enum:"required,none" doc:"whether a second person must approve messages to uploaded lists; default: required"`
	HoldExemptUrgent bool   `json:"hold_exempt_urgent,omitempty" doc:"broadcasts in the lane urgent do not wait"`

	Rate       string      `json:"rate,omitempty" doc:"rate limit for all its channels together: 20/s, 1000/min or unlimited"`
	DailyQuota *DailyQuota `json:"daily_quota,omitempty" doc:"daily quota of messages for all its channels together; a request may give just the number"`
	Bounces    *Bounces    `json:"bounces,omitempty" doc:"when bounces suppress an address; omitted rules have their defaults"`

	Pages *Pages `json:"pages,omitempty" doc:"appearance and texts of the recipient pages"`

	MailDomains []MailDomain `json:"mail_domains,omitempty" maxItems:"1000" doc:"domains for whose addresses its mailboxes receive mail; default: all addresses of its mailboxes in domains that no service lists. Only a key that is valid for all services can change them"`

	Roles []RoleGrant `json:"roles,omitempty" maxItems:"1000" doc:"roles in the service of people who sign in to the console with OpenID Connect; default: none. Roles in all services are in the settings of the server"`

	Notify *NotifySettings `json:"notify,omitempty" doc:"lets clients of GOV.UK Notify use the service, at the address in the server setting notify_listen; default: they cannot"`

	SubscriberSchema json.RawMessage `json:"subscriber_schema,omitempty" doc:"JSON Schema of the attributes of its subscribers; default: any object"`
}

// NotifySettings let clients of GOV.UK Notify use a service.
type NotifySettings struct {
	ID        string         `json:"id,omitempty" format:"uuid" doc:"UUID of the service in keys and links; default: a new one, which is kept for good"`
	Email     string         `json:"email,omitempty" doc:"name of the channel for mails; default: mails are refused"`
	SMS       string         `json:"sms,omitempty" doc:"name of the channel for text messages, with addresses: phone; default: text messages are refused"`
	Trial     bool           `json:"trial,omitempty" doc:"only members of team and guest_list can be recipients"`
	Team      []string       `json:"team,omitempty" maxItems:"1000" doc:"addresses and phone numbers of the team"`
	GuestList []string       `json:"guest_list,omitempty" maxItems:"1000" doc:"other addresses and phone numbers to which team keys and a service on trial can send"`
	Contact   string         `json:"contact,omitempty" maxLength:"512" doc:"address, number or URL on the download pages of files; default: files are refused"`
	Rate      string         `json:"rate,omitempty" doc:"maximum rate of requests that send, for each type of key; default: 3000/min"`
	Daily     *NotifyDaily   `json:"daily,omitempty" doc:"maximum numbers of messages on one day in UTC"`
	ReplyTo   []NotifySender `json:"reply_to,omitempty" maxItems:"200" doc:"reply addresses from which a request can choose"`
	Senders   []NotifySender `json:"sms_senders,omitempty" maxItems:"200" doc:"names or numbers from which a request can choose"`
	SMSPrefix bool           `json:"sms_prefix,omitempty" doc:"text messages begin with the title of the service"`

	ReportAccepted string `json:"report_accepted_as_delivered,omitempty" doc:"when the API reports an accepted message as delivered: never, immediately, or after and a duration, such as after 1h; default: never"`
}

// A NotifySender is an address, a name or a number that a request can choose by its id.
type NotifySender struct {
	ID      string `json:"id" format:"uuid"`
	Address string `json:"address" doc:"mail address, or name or number of a sender of text messages"`
	Default bool   `json:"default,omitempty" doc:"used by requests that choose none"`
}

// NotifyDaily are the maximum numbers of messages of a service on one day.
type NotifyDaily struct {
	Email int `json:"email,omitempty" minimum:"1" doc:"mails; default: 250000, or 50 on trial"`
	SMS   int `json:"sms,omitempty" minimum:"1" doc:"text messages; default: 250000, or 50 on trial"`
}

// A MailDomain is a domain for whose addresses the mailboxes of a service receive mail. It belongs to one service.
type MailDomain struct {
	Domain   string `json:"domain" doc:"in lower case, such as example.org; an internationalized name in its xn-- form"`
	CatchAll string `json:"catch_all,omitempty" doc:"address of the mailbox that receives the mail to addresses in the domain that nobody has; default: such mail is refused"`
}

// A RoleGrant gives a role to all people for whom an issuer of OpenID Connect states a claim.
type RoleGrant struct {
	Issuer string `json:"issuer" maxLength:"500" doc:"URL of the issuer, as in the settings of the server"`
	Claim  string `json:"claim" maxLength:"200" doc:"name of the claim, such as groups; dots lead into objects, as in realm_access.roles"`
	Value  string `json:"value" maxLength:"500" doc:"value of the claim, or one value of its list"`
	Role   string `json:"role" enum:"viewer,sender,approver,admin" doc:"role of these people: viewer has the scope read; sender has read, publish and subscribe; approver has read and approve; admin has admin"`
}

// A Topic is a named kind of event.
type Topic struct {
	Name             string          `json:"name,omitempty" doc:"can be omitted if the path contains it"`
	Title            string          `json:"title,omitempty" doc:"display name"`
	Lane             string          `json:"lane,omitempty" enum:"urgent,normal,bulk" doc:"lane of its messages; default: normal"`
	Schema           json.RawMessage `json:"schema,omitempty" doc:"JSON Schema of the event data; default: any data"`
	Key              string          `json:"key,omitempty" doc:"field of the data that identifies the object of an event, such as symbol or quote.symbol; crosses(event.price, level) compares an event with the previous event of the same key"`
	Template         string          `json:"template,omitempty" doc:"template for filters, and for rules without a template of their own"`
	Expiry           string          `json:"expiry,omitempty" doc:"messages that could not be sent within this time expire, such as 2h; default: the setting of the channel"`
	HoldAbove        int             `json:"hold_above,omitempty" minimum:"1" maximum:"1000000000" doc:"broadcasts with more messages wait for approval; default: the setting of the service"`
	HoldExemptUrgent bool            `json:"hold_exempt_urgent,omitempty" doc:"with hold_above: broadcasts in the lane urgent do not wait"`

	QuietHours *QuietHours `json:"quiet_hours,omitempty" doc:"hours in which nothing is sent, in addition to those of the channel"`
	Generation string      `json:"generation,omitempty" doc:"which events have their messages generated together: continuous (all events that are waiting), per_change (each event separately), or a window of 1s to 10s (all events of the window, when it ends); default: continuous"`
	Digest     *Digest     `json:"digest,omitempty" doc:"how events that wait for a cadence are combined into one message; default: every subscription is immediate"`
	Cadence    string      `json:"cadence,omitempty" doc:"cadence of new subscriptions that do not specify one, such as daily 08:00; default: immediate"`
	Filter     string      `json:"filter,omitempty" doc:"worker that can remove recipients of each event before anything is sent to them; not for a topic with a digest"`
	Unique     string      `json:"unique,omitempty" enum:"recipient,subscription" doc:"what gets one message of an event: a recipient over a channel, for all subscriptions that match; or each subscription, and then equal subscriptions are separate ones; default: recipient; subscription is not for a topic with a digest"`

	Signup *Signup `json:"signup,omitempty" doc:"how people can subscribe themselves; default: they cannot. A request may also give true"`

	Rules []Rule `json:"rules,omitempty" doc:"rules, in the order that selects the template; if an update omits them, they do not change"`
}

// QuietHours are hours in which nothing is sent to people, in their own time zone.
type QuietHours struct {
	From   string   `json:"from" doc:"start time, such as 21:00"`
	To     string   `json:"to" doc:"end time, such as 08:00, at most 24:00; it can be on the next day"`
	Days   []string `json:"days,omitempty" doc:"days on which they begin, mon to sun; default: every day"`
	Zone   string   `json:"zone,omitempty" doc:"time zone of people whose own time zone is unknown; default: UTC"`
	Spread string   `json:"spread,omitempty" doc:"period over which the delayed messages are sent; default: 5m"`
	Urgent bool     `json:"urgent,omitempty" doc:"the urgent lane also waits"`
}

// Digest defines how events that wait for a cadence are combined.
type Digest struct {
	Template string `json:"template" doc:"template of the message; it reads items instead of event"`
	Key      string `json:"key,omitempty" doc:"field of the data, such as content_id; of several events with the same value, only the newest is included. Default: all events are included"`
	Max      int    `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"maximum number of events in one message; if there are more, the message contains the newest and the number of the others. Default: 50"`
}

// A Rule is a condition of a topic that subscriptions choose by name.
type Rule struct {
	Name     string            `json:"name,omitempty" doc:"can be omitted if the path contains it"`
	When     string            `json:"when" doc:"CEL over event and sub, such as event.mag >= sub.min_mag"`
	Params   map[string]string `json:"params,omitempty" doc:"values that a subscription must give: name and type (string, number, boolean or strings)"`
	Template string            `json:"template,omitempty" doc:"template of its messages; default: the template of the topic"`

	Title       string `json:"title,omitempty" minLength:"1" maxLength:"100" doc:"name for recipients on pages and in emails, where the condition is never shown; default: the name as words where people choose a rule, otherwise the title of the topic"`
	Description string `json:"description,omitempty" minLength:"1" maxLength:"500" doc:"text for recipients, shown below the title"`
}

// A Template is a version of a template. Every change creates a new version.
// Members that the server sets are ignored in requests, except note.
type Template struct {
	Name    string    `json:"name,omitempty" doc:"can be omitted if the path contains it"`
	Version int       `json:"version,omitempty" doc:"from 1; set by the server and ignored in requests"`
	State   string    `json:"state,omitempty" enum:"draft,published,earlier" doc:"draft: not used for messages yet; published: used for messages; earlier: no longer used"`
	Base    int       `json:"base,omitempty" doc:"for a draft: the version that was published when the draft was saved"`
	At      time.Time `json:"at,omitzero" doc:"when it entered this state: when the draft was saved, or when the version was last published"`
	Key     string    `json:"key,omitempty" doc:"id of the key that saved or published it"`
	KeyName string    `json:"key_name,omitempty" doc:"name of the key at that time"`
	Note    string    `json:"note,omitempty" maxLength:"512" doc:"reason for the change, in one line"`
	TemplateParts
}

// A Publication selects the version of a template to publish.
type Publication struct {
	Version int    `json:"version,omitempty" minimum:"0" doc:"the version of the draft, or an earlier version to return to; default, and 0: the draft"`
	Note    string `json:"note,omitempty" maxLength:"512" doc:"reason for the change, in one line; default: the note of the draft"`
}

// A TemplateDiff has the differences between two versions of a template.
type TemplateDiff struct {
	Template string     `json:"template" doc:"name of the template"`
	From     VersionRef `json:"from"`
	To       VersionRef `json:"to"`
	Parts    []PartDiff `json:"parts" doc:"parts that differ; empty if the versions are the same"`
}

// A VersionRef identifies a version.
type VersionRef struct {
	Version int    `json:"version" doc:"number of the version; 0: an empty template, before the first version"`
	State   string `json:"state,omitempty" enum:"draft,published,earlier" doc:"current state"`
}

// A PartDiff is the difference in one part of a template.
type PartDiff struct {
	Part string `json:"part" doc:"name of the part, such as subject, html, locales/cy/text or partials/head"`
	Diff string `json:"diff" doc:"unified diff, as from diff -u"`
}

// TemplateParts has the texts of a template, in Liquid.
type TemplateParts struct {
	Subject string `json:"subject,omitempty" doc:"required for email"`
	Text    string `json:"text,omitempty" doc:"plain text; default: derived from the HTML"`
	HTML    string `json:"html,omitempty" doc:"values are escaped"`
	JSON    string `json:"json,omitempty" doc:"body of webhook requests, in place of the default document"`

	Markdown string `json:"markdown,omitempty" doc:"source of the HTML, instead of html"`
	ID       string `json:"id,omitempty" format:"uuid" doc:"UUID for clients of GOV.UK Notify; default: that of the previous version, or one that is derived from the name"`
	Title    string `json:"title,omitempty" maxLength:"255" doc:"name of the template for clients of GOV.UK Notify; default: the name"`
	Type     string `json:"type,omitempty" enum:"email,sms" doc:"sms: a text message, which has a text and no subject"`
	Syntax   string `json:"syntax,omitempty" enum:"liquid,notify" doc:"notify: placeholders ((name)) and ((flag??text)), as in GOV.UK Notify"`
	Layout   string `json:"layout,omitempty" doc:"frame around the HTML: layout: plain has an unsubscribe link, layout: letter has none; absent: the HTML is complete"`
	Lang     string `json:"lang,omitempty" doc:"language of the template, such as cy, or a Liquid output such as {{ event.locale }}; default: en"`
	Page     string `json:"page,omitempty" doc:"a layout of your own, in HTML, with {{ content }}, {{ title }}, {{ lang }} and {{ dir }}"`

	Partials map[string]string `json:"partials,omitempty" doc:"texts for {% render %}, by name"`

	Formatter string `json:"formatter,omitempty" doc:"worker that formats each message; the parts read its response in the variable formatted, and can be omitted if it returns subject, text and html"`

	TemplateFiles
	TemplateVariants
}

// ChannelSettings is the configuration of a channel. Requests and responses never contain
// passwords: password_env or password_file specify where the server reads them.
type ChannelSettings struct {
	Name         string   `json:"name,omitempty" doc:"can be omitted if the path contains it"`
	Driver       string   `json:"driver" doc:"smtp, file, inbox, webhook, worker or simulate, which delivers nothing"`
	Title        string   `json:"title,omitempty" minLength:"1" maxLength:"100" doc:"name shown to recipients who choose a channel; default: Email or Webhook"`
	Relay        string   `json:"relay,omitempty" doc:"smtp: host:port of the next hop"`
	Relays       []Relay  `json:"relays,omitempty" doc:"smtp: several next hops, instead of relay"`
	Path         string   `json:"path,omitempty" doc:"file: folder for the messages"`
	Keep         string   `json:"keep,omitempty" doc:"inbox: messages are removed this long after their broadcast began, such as 720h; default: they stay"`
	From         string   `json:"from,omitempty" doc:"From header, such as News <news@example.org>"`
	Sender       string   `json:"sender,omitempty" doc:"envelope sender; default: the address of from"`
	Returns      string   `json:"returns,omitempty" doc:"domain of envelope senders that identify the delivery when a message bounces, such as bounces.example.org; default: sender is used"`
	ReplyTo      string   `json:"reply_to,omitempty" doc:"Reply-To header"`
	Connections  int      `json:"connections,omitempty" doc:"maximum number of connections"`
	Reserve      *Reserve `json:"reserve,omitempty" doc:"share of connections reserved for more urgent lanes"`
	Rate         string   `json:"rate,omitempty" doc:"rate limit over all connections: 30/s, 1000/min, 5000/h or unlimited"`
	Adapt        bool     `json:"adapt,omitempty" doc:"lower the rate and the number of concurrent messages while replies indicate overload"`
	TLS          string   `json:"tls,omitempty" doc:"off, opportunistic, required or implicit"`
	Username     string   `json:"username,omitempty" doc:"user name for AUTH"`
	PasswordEnv  string   `json:"password_env,omitempty" doc:"name of an environment variable of the server that contains the password"`
	PasswordFile string   `json:"password_file,omitempty" doc:"file on the server that contains the password"`
	Hello        string   `json:"hello,omitempty" doc:"host name in EHLO; default: the name of the server's host"`
	SendTimeout  string   `json:"send_timeout,omitempty" doc:"time limit for one message, such as 2m"`
	Expiry       string   `json:"expiry,omitempty" doc:"messages that could not be sent within this time expire"`
	Retry        []string `json:"retry,omitempty" doc:"waits between attempts, each with jitter"`
	Grouping     string   `json:"grouping,omitempty" doc:"auto, pipelining or lockstep"`
	Multicast    int      `json:"multicast,omitempty" doc:"smtp: maximum number of recipients in one transaction, for messages without personal content; also limited to what the rate allows in one second. Default: one message per recipient"`
	Submission   []string `json:"submission,omitempty" doc:"smtp and file: domains of mail addresses whose owners of mailboxes may send mail to anybody through this channel. Default: none"`
	Domain       string   `json:"domain,omitempty" doc:"domain of Message-ID; default: the domain of from"`
	ListID       string   `json:"list_id,omitempty" doc:"List-Id header (RFC 2919)"`

	Receipts *Receipts `json:"receipts,omitempty" doc:"smtp: how the provider reports the state of messages over HTTP, to POST /receipts/{service}/{channel}"`

	DKIM []DKIMKey `json:"dkim,omitempty" doc:"smtp and file: keys that sign emails; for each domain and algorithm, the newest key signs"`

	DailyQuota   *DailyQuota          `json:"daily_quota,omitempty" doc:"daily quota of messages; a request may give just the number"`
	Destinations *DestinationSettings `json:"destinations,omitempty" doc:"limits for each destination: a domain, or host and port"`

	SecretEnv      string `json:"secret_env,omitempty" doc:"webhook: name of an environment variable of the server that contains the secret for signatures"`
	SecretFile     string `json:"secret_file,omitempty" doc:"webhook: file on the server that contains the secret, instead of secret_env; without both, the server signs with a key of its own"`
	AllowHTTP      bool   `json:"allow_http,omitempty" doc:"webhook: allow URLs without TLS"`
	ConnectTimeout string `json:"connect_timeout,omitempty" doc:"webhook: time limit for the TCP connection, and again for the TLS handshake"`

	URL               string `json:"url,omitempty" doc:"webhook with addresses phone: URL of the SMS provider, to which all messages are posted"`
	AuthorizationEnv  string `json:"authorization_env,omitempty" doc:"webhook with url: name of an environment variable of the server that contains the Authorization header of the requests"`
	AuthorizationFile string `json:"authorization_file,omitempty" doc:"webhook with url: file on the server that contains the Authorization header of the requests, instead of authorization_env"`

	Worker    string `json:"worker,omitempty" doc:"worker: name of the worker that delivers"`
	Addresses string `json:"addresses,omitempty" doc:"worker: mail or url; messages to URLs are JSON documents. Default: mail. webhook: url or phone; with phone, all messages go to the URL in url. Default: url"`
	Batch     int    `json:"batch,omitempty" doc:"worker: maximum number of messages in a request. Default: 50"`

	QuietHours *QuietHours `json:"quiet_hours,omitempty" doc:"hours in which nothing is sent to people, in their own time zone"`

	RetryBy map[string][]string `json:"retry_by,omitempty" doc:"waits between attempts for one class of replies: throttled, greylisted, full, busy, network, blocked, invalid, content or denied"`
}

// Receipts defines how the provider of a channel reports the state of messages. Requests
// and responses never contain the secret itself.
type Receipts struct {
	Form       string `json:"form" enum:"standard,mailgun" doc:"format of the documents and their signature"`
	SecretEnv  string `json:"secret_env,omitempty" doc:"name of an environment variable of the server that contains the key for the signatures"`
	SecretFile string `json:"secret_file,omitempty" doc:"file on the server that contains the key, instead of secret_env"`
}

// A DKIMKey is a private key that signs email (RFC 6376). Requests and responses never
// contain the key itself.
type DKIMKey struct {
	Domain   string `json:"domain" doc:"signing domain: the domain of from, or a parent of it"`
	Selector string `json:"selector" doc:"selector; the DNS record of the public key is selector._domainkey.domain"`
	KeyEnv   string `json:"key_env,omitempty" doc:"name of an environment variable of the server that contains the key"`
	KeyFile  string `json:"key_file,omitempty" doc:"file on the server that contains the key, instead of key_env"`
	From     string `json:"from,omitempty" doc:"time or date from which the key signs, such as 2026-11-20T08:00:00Z"`

	WaitForDNS bool `json:"wait_for_dns,omitempty" doc:"the key does not sign until the server has found its DNS record; until then the previous key signs"`
}

// Bounces are the rules by which a service suppresses addresses after bounces.
type Bounces struct {
	Unknown   *BounceRule `json:"unknown,omitempty" doc:"the status code and the text both report that the mailbox does not exist; default: the first bounce"`
	Hard      *BounceRule `json:"hard,omitempty" doc:"either of them reports it, or the domain does not exist; default: 3 bounces within 30 days"`
	Soft      *BounceRule `json:"soft,omitempty" doc:"the message failed for a reason other than the sender; default: 7 bounces within 14 days, over at least 4 days, for 90 days"`
	Full      *BounceRule `json:"full,omitempty" doc:"the mailbox is full; default: 7 bounces within 60 days, over at least 30 days, for 90 days"`
	Complaint *BounceRule `json:"complaint,omitempty" doc:"a recipient reported a message as spam; default: the first complaint"`
}

// A BounceRule defines after which bounces an address is suppressed.
type BounceRule struct {
	After      int  `json:"after,omitempty" minimum:"1" maximum:"100" doc:"number of bounces"`
	WithinDays int  `json:"within_days,omitempty" minimum:"1" maximum:"180" doc:"period in which they are counted, in days; default: 30"`
	OverDays   int  `json:"over_days,omitempty" minimum:"0" maximum:"180" doc:"minimum number of days between the first and the last bounce; default: 0"`
	ForDays    int  `json:"for_days,omitempty" minimum:"1" maximum:"3650" doc:"duration of the suppression, in days; default: no end"`
	Never      bool `json:"never,omitempty" doc:"true: addresses are never suppressed; cannot be combined with the other settings"`
}

// A DailyQuota is the maximum number of messages per day.
type DailyQuota struct {
	Messages int64  `json:"messages" doc:"maximum number of messages per day, 1 to 1000000000"`
	Zone     string `json:"zone,omitempty" doc:"time zone in which days begin, such as Europe/London; default: UTC"`
}

// DestinationSettings are the limits of a channel for each destination.
type DestinationSettings struct {
	Rate        string                      `json:"rate,omitempty" doc:"rate limit for each destination: 20/s, 1000/min or unlimited"`
	Connections int                         `json:"connections,omitempty" doc:"maximum number of concurrent messages to one destination; default: no separate limit"`
	By          string                      `json:"by,omitempty" enum:"domain,mx" doc:"definition of a destination: domain, or mx (all domains whose mail exchangers belong to one organization; only for smtp)"`
	Only        map[string]DestinationLimit `json:"only,omitempty" doc:"limits that differ for single destinations, by domain or host:port"`
}

// DestinationLimit has the limits of a channel for one destination.
type DestinationLimit struct {
	Rate        string `json:"rate,omitempty" doc:"20/s, 1000/min or unlimited"`
	Connections int    `json:"connections,omitempty" doc:"maximum number of concurrent messages"`
}

// Reserve is the part of a channel's connections that less urgent lanes leave free.
type Reserve struct {
	Urgent string `json:"urgent,omitempty" doc:"reserved for the urgent lane only, such as 10%; default: 5%"`
	Normal string `json:"normal,omitempty" doc:"also reserved for the urgent and the normal lanes, such as 10%; default: 5%"`
}

// A Relay is one of several next hops of a channel. Settings that it omits
// are those of the channel, except name and password.
type Relay struct {
	Name         string `json:"name,omitempty" doc:"unique within the channel; default: the value of relay"`
	Relay        string `json:"relay" doc:"host:port"`
	Weight       int    `json:"weight" minimum:"0" maximum:"1000" doc:"share of the connections, relative to the weights of the other relays; 0: the relay is not used"`
	TLS          string `json:"tls,omitempty" doc:"off, opportunistic, required or implicit"`
	Username     string `json:"username,omitempty" doc:"user name for AUTH"`
	PasswordEnv  string `json:"password_env,omitempty" doc:"name of an environment variable of the server that contains the password"`
	PasswordFile string `json:"password_file,omitempty" doc:"file on the server that contains the password"`
	Hello        string `json:"hello,omitempty" doc:"host name in EHLO"`
	Grouping     string `json:"grouping,omitempty" doc:"auto, pipelining or lockstep"`
}

// ServicePage is a page of services, by name.
type ServicePage struct {
	Services []Service `json:"services" doc:"services, by name"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TopicPage is a page of topics, by name.
type TopicPage struct {
	Topics []Topic `json:"topics" doc:"topics, by name"`
	Next   string  `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// RulePage is a page of the rules of a topic, in their order.
type RulePage struct {
	Rules []Rule `json:"rules" doc:"rules, in the order that selects the template"`
	Next  string `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// TemplatePage is a page of templates, by name, or of the versions of one template,
// the oldest first.
type TemplatePage struct {
	Templates []Template `json:"templates" doc:"templates by name, or versions from the oldest"`
	Next      string     `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// ChannelPage is a page of channels, by name.
type ChannelPage struct {
	Channels []ChannelSettings `json:"channels" doc:"channels, by name"`
	Next     string            `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
