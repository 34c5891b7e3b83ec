package document

import (
	"net"
	"net/mail"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/dkim"
	"fanfare.dev/fanfare/internal/schedule/quiethours"
)

// drivers are the drivers of channels.
var drivers = []string{"smtp", "file", "inbox", "webhook", "worker", catalog.DriverSimulate}

func (p *reader) channel(n node) *ChannelSpec {
	c := &ChannelSpec{}
	all := fieldReaders{
		"driver":       func(v node) { c.Driver = v.choice(drivers...) },
		"title":        func(v node) { c.Title = v.label(catalog.MaxLabelTitle) },
		"delete":       func(v node) { c.Delete = v.yes() },
		"from":         func(v node) { c.From = v.mailbox() },
		"sender":       func(v node) { c.Sender = v.address() },
		"returns":      func(v node) { c.Returns = v.domain() },
		"reply_to":     func(v node) { c.ReplyTo = v.mailbox() },
		"connections":  func(v node) { c.Connections = v.number(1, maxConnections) },
		"reserve":      func(v node) { c.Reserve = v.reserve() },
		"rate":         func(v node) { c.Rate = v.rate() },
		"expiry":       func(v node) { c.Expiry = v.duration() },
		"retry":        func(v node) { v.retry(c) },
		"quiet_hours":  func(v node) { c.QuietHours = v.quietHours() },
		"retry_by":     func(v node) { c.RetryBy = v.retryBy() },
		"send_timeout": func(v node) { c.SendTimeout = v.duration() },
		"domain":       func(v node) { c.Domain = v.host() },
		"dkim":         func(v node) { c.DKIM = v.dkim() },
		"list_id":      func(v node) { c.ListID = v.line() },
	}
	driver := "smtp"
	if pair := n.find("driver"); pair != nil {
		quiet := reader{doc: p.doc, anchors: p.anchors} // read for good below
		driver = node{Node: pair.Value, p: &quiet}.text()
	}
	limitFields(c, driver, all)
	unknown := !slices.Contains(drivers, driver) // which is what is wrong then, and no field
	if driver == "smtp" || unknown {
		all["relay"] = func(v node) { c.Relay = v.hostPort() }
		all["relays"] = func(v node) { c.Relays = v.relays() }
		all["tls"] = func(v node) { c.TLS = v.tls() }
		all["username"] = func(v node) { c.Username = v.line() }
		all["password_env"] = func(v node) { c.PasswordEnv = v.line() }
		all["password_file"] = func(v node) { c.PasswordFile = v.path() }
		all["hello"] = func(v node) { c.Hello = v.host() }
		all["grouping"] = func(v node) { c.Grouping = v.grouping() }
		all["receipts"] = func(v node) { c.Receipts = v.receipts() }
		all["multicast"] = func(v node) { c.Multicast = v.number(1, maxMulticast) }
		c.TLS, c.Grouping, c.Rate = "opportunistic", "auto", defaultRate
	}
	if driver == "inbox" || unknown {
		all["keep"] = func(v node) { c.Keep = v.duration() }
	}
	if driver == "smtp" || driver == "file" || unknown {
		all["submission"] = func(v node) {
			v.each(func(one node) {
				if domain := one.domain(); !slices.Contains(c.Submission, domain) {
					c.Submission = append(c.Submission, domain)
				}
			})
		}
	}
	if driver == "file" || unknown {
		all["path"] = func(v node) { c.Path = v.path() }
	}
	c.Connections, c.SendTimeout, c.Expiry, c.Retry = defaultConnections, defaultSendTimeout, defaultExpiry, defaultRetry
	if driver == "webhook" || unknown {
		webhookFields(c, all)
	}
	if driver == "worker" || unknown {
		all["worker"] = func(v node) { c.Worker = v.line() }
		all["addresses"] = func(v node) { c.Addresses = v.choice("mail", "url") }
		all["batch"] = func(v node) { c.Batch = v.number(1, maxWorkerBatch) }
		c.Addresses, c.Batch = "mail", defaultWorkerBatch
	}
	if driver == catalog.DriverSimulate {
		all["addresses"] = func(v node) {
			if kind := v.choice("mail", phone); kind == phone {
				c.Addresses = kind
			}
		}
	}
	if driver == "webhook" {
		c.SendTimeout, c.ConnectTimeout = defaultAnswerTimeout, defaultConnectTimeout
		for _, field := range []string{"from", "sender", "returns", "reply_to", "domain", "dkim", "list_id"} { // of mail
			delete(all, field)
		}
	}
	n.fields(all)
	n.oneOf("sender", "returns")
	if c.Delete {
		n.alone("delete", true)
		c.ChannelSettings = catalog.ChannelSettings{}
		return c
	}
	n.needs("driver", "use smtp, file, inbox, webhook, worker or simulate")
	if driver != "webhook" && c.Addresses != "url" && c.Addresses != phone {
		n.needs("from", "such as Example <news@example.org>")
	}
	switch c.Driver {
	case "webhook":
		n.oneOf("secret_env", "secret_file")
		n.provider(c)
	case "smtp":
		n.relayed(c)
	case "file":
		n.needs("path", "set it to the directory for the mail files")
	case "worker":
		n.needs("worker", "set it to the name of a worker of the service")
	}
	return c
}

func (n node) needs(field, hint string) {
	if !n.has(field) {
		n.fault(hint, "%s is missing", field)
	}
}

// mailbox reads a header address such as Name <a@example.org> (RFC 5322, 3.4).
func (n node) mailbox() string {
	s := n.line()
	if _, err := mail.ParseAddress(s); err != nil {
		n.fault("write it as Name <name@example.org>", "%s is not an email address", inputerror.Quote(s))
	}
	return s
}

// address reads an address without a display name.
func (n node) address() string {
	s := n.line()
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s {
		n.fault("write it as name@example.org", "%s is not an address", inputerror.Quote(s))
	}
	return s
}

func (n node) hostPort() string {
	s := n.line()
	host, port, err := net.SplitHostPort(s)
	number, portErr := strconv.Atoi(port)
	if err != nil || host == "" || portErr != nil || number < 1 || number > 65535 {
		n.fault("write it as host:port", "%s is not a host and port", inputerror.Quote(s))
	}
	return s
}

func (n node) host() string {
	s := n.line()
	if s == "" || len(s) > 253 || strings.ContainsAny(s, " \t@<>/") {
		n.fault("write it as mail.example.org", "%s is not a host name", inputerror.Quote(s))
	}
	return s
}

// maxReturnsBytes leaves space in an address (254 bytes) for the part before the @.
const maxReturnsBytes = 200

// domain reads a mail domain and converts it to lower case.
func (n node) domain() string {
	s := n.line()
	small := strings.ToLower(s)
	wrong := len(s) > maxReturnsBytes || !strings.Contains(s, ".")
	for label := range strings.SplitSeq(small, ".") {
		wrong = wrong || label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-'
	}
	if wrong {
		n.fault("write it as bounces.example.org; write an internationalized name in its xn-- form", "%s is not a mail domain", inputerror.Quote(s))
	}
	return small
}

// path reads a path on the server; a relative one is below the document.
func (n node) path() string {
	s := n.line()
	if s == "" {
		n.fault("", "the path is empty")
		return s
	}
	if !filepath.IsAbs(s) && n.p.dir != "" {
		if abs, err := filepath.Abs(filepath.Join(n.p.dir, s)); err == nil {
			return abs
		}
	}
	return s
}

func (n node) rate() catalog.Rate {
	s := n.text()
	r, err := catalog.ParseRate(s)
	if err != nil {
		n.fault("write it as 30/s, 1000/min, 5000/h or unlimited", "%s is not a rate", inputerror.Quote(s))
	}
	return r
}

const (
	maxDKIMKeys      = 8 // of a channel
	maxSelectorBytes = 63
)

// dkim reads the keys of a channel.
func (n node) dkim() (all []catalog.DKIMKey) {
	named := map[string]bool{}
	n.each(func(v node) {
		k := v.dkimKey()
		if name := k.Selector + "._domainkey." + k.Domain; named[name] {
			v.fault("change the selector of one of them", "two keys use the DNS record %s", inputerror.Quote(name))
		} else {
			named[name] = true
		}
		all = append(all, k)
	})
	if len(all) > maxDKIMKeys {
		n.fault("remove keys that are no longer used", "the channel has %d DKIM keys; at most %d are allowed", len(all), maxDKIMKeys)
	}
	return all
}

func (n node) dkimKey() (k catalog.DKIMKey) {
	n.fields(fieldReaders{
		"domain":   func(v node) { k.Domain = v.domain() },
		"selector": func(v node) { k.Selector = v.selector() },
		"key_env":  func(v node) { k.KeyEnv = v.line() },
		"key_file": func(v node) { k.KeyFile = v.path() },
		"from":     func(v node) { k.From = v.moment() },

		"wait_for_dns": func(v node) { k.WaitForDNS = v.yes() },
	})
	n.needs("domain", "such as example.org: the domain of from, or a parent domain")
	n.needs("selector", "such as s1, for a DNS record at s1._domainkey under the domain")
	n.oneOf("key_env", "key_file")
	if k.KeyEnv+k.KeyFile == "" {
		n.fault("set key_file to the file that contains the key; to create a key, run fanfare dkim new", "the key is missing")
	}
	return k
}

// selector reads the DKIM selector and converts it to lower case.
func (n node) selector() string {
	s := strings.ToLower(n.line())
	if !dkim.ValidName(s) || len(s) > maxSelectorBytes {
		n.fault("use letters, digits and hyphens, such as s1", "%s is not a selector", inputerror.Quote(s))
	}
	return s
}

// moment reads a time, or a day that begins at midnight UTC.
func (n node) moment() time.Time {
	s := n.text()
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC()
		}
	}
	n.fault("write it as 2026-11-20T08:00:00Z or 2026-11-20", "%s is not a time", inputerror.Quote(s))
	return time.Time{}
}

// maxQuota is the highest quota; anything above it is effectively unlimited.
const maxQuota = 1_000_000_000

// maxOnly is the maximum number of destinations with their own limits.
const maxOnly = 1000

// limitFields adds the fields that limit the load of a channel.
func limitFields(c *ChannelSpec, driver string, all fieldReaders) {
	all["adapt"] = func(v node) { c.Adapt = v.yes() }
	all["daily_quota"] = func(v node) { c.DailyQuota = v.dailyQuota() }
	all["destinations"] = func(v node) {
		known := oneDestination(&c.Destinations)
		if driver == "smtp" {
			known["by"] = func(v node) {
				if by := v.choice("domain", catalog.ByMX); by == catalog.ByMX {
					c.Destinations.By = by
				}
			}
		}
		known["only"] = func(v node) {
			c.Destinations.Only = map[string]catalog.DestinationSettings{}
			v.entries(func(name string, v node) {
				if name == "" || name != strings.ToLower(name) || strings.ContainsAny(name, " \t/@") {
					v.fault("write it as gmail.com or hooks.example.org:443", "%s is not a domain, or a host and port", inputerror.Quote(name))
				}
				var own catalog.DestinationSettings
				v.fields(oneDestination(&own))
				c.Destinations.Only[name] = own
			})
			if n := len(c.Destinations.Only); n > maxOnly {
				v.fault("", "%d destinations have their own limits; at most %d are allowed", n, maxOnly)
			}
		}
		v.fields(known)
	}
}

func oneDestination(d *catalog.DestinationSettings) fieldReaders {
	return fieldReaders{
		"rate":        func(v node) { d.Rate = v.rate() },
		"connections": func(v node) { d.Connections = v.number(1, maxConnections) },
	}
}

// dailyQuota reads a number of messages, an object with the number and the time zone, or unlimited.
func (n node) dailyQuota() (q catalog.DailyQuota) {
	messages := func(v node) { q.Messages = int64(v.number(1, maxQuota)) }
	switch value := n.resolved().(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
	case *ast.StringNode:
		if value.Value != catalog.Unlimited {
			messages(n)
		}
		return q
	default:
		messages(n)
		return q
	}
	n.fields(fieldReaders{
		"messages": messages,
		"zone": func(v node) {
			q.Zone = v.line()
			if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == "Local" {
				v.fault("use a name from the IANA time zone database, such as Europe/London", "%s is not a time zone", inputerror.Quote(q.Zone))
			}
		},
	})
	n.needs("messages", "such as 100000")
	return q
}

const (
	defaultSpread = catalog.Duration(5 * time.Minute)
	maxSpread     = catalog.Duration(6 * time.Hour)
)

func (n node) quietHours() (q catalog.QuietHours) {
	q.Spread = defaultSpread
	n.fields(fieldReaders{
		"from": func(v node) { q.From = v.timeOfDay() },
		"to":   func(v node) { q.To = v.timeOfDay() },
		"days": func(v node) {
			v.each(func(v node) {
				day := v.text()
				if _, err := quiethours.ParseDay(day); err != nil {
					v.fault("use mon, tue, wed, thu, fri, sat or sun", "%v", err)
				}
				q.Days = append(q.Days, day)
			})
		},
		"zone": func(v node) {
			q.Zone = v.line()
			if _, err := time.LoadLocation(q.Zone); err != nil || q.Zone == time.Local.String() {
				v.fault("use a name such as Europe/London", "unknown time zone %s", inputerror.Quote(q.Zone))
			}
		},
		"spread": func(v node) {
			if q.Spread = v.duration(); q.Spread > maxSpread {
				v.fault("", "the spread must be at most %v", time.Duration(maxSpread))
			}
		},
		"urgent": func(v node) { q.Urgent = v.yes() },
	})
	n.needs("from", "such as \"21:00\"")
	n.needs("to", "such as \"08:00\"")
	if c, err := q.Compile(); err == nil && (c.From == c.To || c.To-c.From == 24*60 && len(q.Days) == 0) {
		n.fault("to stop sending, pause the channel or remove it", "the quiet hours would never end")
	}
	return q
}

func (n node) timeOfDay() string {
	s := n.text()
	if _, err := quiethours.ParseClock(s); err != nil {
		n.fault("write it in quotes as \"08:00\"", "%s is not a time of day", inputerror.Quote(s))
	}
	return s
}

// receipts reads how a provider reports the outcomes of messages.
func (n node) receipts() (r catalog.Receipts) {
	n.fields(fieldReaders{
		"form":        func(v node) { r.Form = v.choice(catalog.ReceiptForms...) },
		"secret_env":  func(v node) { r.SecretEnv = v.line() },
		"secret_file": func(v node) { r.SecretFile = v.path() },
	})
	n.needs("form", "use standard or mailgun")
	n.oneOf("secret_env", "secret_file")
	if r.SecretEnv+r.SecretFile == "" {
		n.fault("set secret_file to the file that contains it, or secret_env to an environment variable of the server", "the secret is missing: without it, anyone could send forged receipts")
	}
	return r
}

const (
	maxRelays = 16 // of a channel
	maxWeight = 1000
)

// relays reads the next hops of a channel that has several.
func (n node) relays() (all []catalog.Relay) {
	n.each(func(v node) { all = append(all, v.relay()) })
	used, names := false, map[string]bool{}
	for i := range all {
		r := &all[i]
		used = used || r.Weight > 0
		if names[r.DisplayName()] {
			n.fault("give each relay a different name", "two relays are named %s", inputerror.Quote(r.DisplayName()))
		}
		names[r.DisplayName()] = true
	}
	switch {
	case len(all) == 0:
		n.fault("add a relay to the list, or use relay", "the list of relays is empty")
	case len(all) > maxRelays:
		n.fault("", "the channel has %d relays; at most %d are allowed", len(all), maxRelays)
	case !used:
		n.fault("pause the channel instead", "all relays have weight 0")
	}
	return all
}

func (n node) relay() catalog.Relay {
	r := catalog.Relay{Weight: 1}
	n.fields(fieldReaders{
		"name":          func(v node) { r.Name = v.name() },
		"relay":         func(v node) { r.Relay = v.hostPort() },
		"weight":        func(v node) { r.Weight = v.number(0, maxWeight) },
		"tls":           func(v node) { r.TLS = v.tls() },
		"username":      func(v node) { r.Username = v.line() },
		"password_env":  func(v node) { r.PasswordEnv = v.line() },
		"password_file": func(v node) { r.PasswordFile = v.path() },
		"hello":         func(v node) { r.Hello = v.host() },
		"grouping":      func(v node) { r.Grouping = v.grouping() },
	})
	n.needs("relay", "such as 127.0.0.1:25")
	n.login(r.Username, r.PasswordEnv, r.PasswordFile)
	return r
}

// relayed checks the relay settings of an SMTP channel.
func (n node) relayed(c *ChannelSpec) {
	if n.has("relay") == n.has("relays") {
		n.fault("set relay, or relays if there are several", "exactly one of relay and relays must be set")
	}
	if len(c.Relays) == 0 {
		n.login(c.Username, c.PasswordEnv, c.PasswordFile)
		return
	}
	for _, field := range []string{"username", "password_env", "password_file"} {
		if n.has(field) {
			n.fault("set it in each relay that needs it", "%s cannot be combined with relays", field)
		}
	}
	if c.Connections < len(c.Relays) {
		n.fault("increase connections", "the channel has %d connections, fewer than its %d relays", c.Connections, len(c.Relays))
	}
}

// login checks that a name has a password, and a password a name.
func (n node) login(username, env, file string) {
	n.oneOf("password_env", "password_file")
	if secret := env + file; (username == "") != (secret == "") {
		n.fault("set username and either password_env or password_file, or omit all of them", "username and password must be set together")
	}
}

func (n node) tls() string { return n.choice("off", "opportunistic", "required", "implicit") }

func (n node) grouping() string { return n.choice("auto", "pipelining", "lockstep") }

func (n node) reserve() (r catalog.Reserve) {
	n.fields(fieldReaders{
		"urgent": func(v node) { r.Urgent = v.share() },
		"normal": func(v node) { r.Normal = v.share() },
	})
	if urgent, normal := r.Shares(); urgent+normal > catalog.MaxReserve/100. {
		n.fault("leave at least 10% of the connections for the bulk lane", "more than %d%% of the connections are reserved", catalog.MaxReserve)
	}
	return r
}

func (n node) share() catalog.Share {
	s := n.text()
	number, ok := strings.CutSuffix(s, "%")
	if percent, err := strconv.Atoi(number); !ok || err != nil || percent < 0 || percent > 100 || strconv.Itoa(percent) != number {
		n.fault("write it as 10%", "%s is not a percentage", inputerror.Quote(s))
		return ""
	}
	return catalog.Share(s)
}

// retryDefault is the name of the retry schedule for all classes without their own.
const retryDefault = "default"

// retry reads the retry schedule of a channel: one list, or lists by class.
func (n node) retry(c *ChannelSpec) {
	if _, list := n.resolved().(*ast.SequenceNode); list {
		c.Retry = n.durations()
		return
	}
	all := fieldReaders{retryDefault: func(v node) { c.Retry = v.durations() }}
	by := catalog.RetryBy{}
	retryFields(by, all)
	n.fields(all)
	if len(by) > 0 {
		c.RetryBy = by
	}
}

// retryBy reads retry schedules by class, as the API returns them.
func (n node) retryBy() catalog.RetryBy {
	all, by := fieldReaders{}, catalog.RetryBy{}
	retryFields(by, all)
	n.fields(all)
	return by
}

// retryFields adds the fields that fill the lists of classes. An empty list is valid: such a reply is
// not retried.
func retryFields(by catalog.RetryBy, all fieldReaders) {
	for _, class := range fanfare.Classes {
		all[string(class)] = func(v node) {
			by[class] = v.durations()
			if by[class] == nil {
				by[class] = []catalog.Duration{}
			}
		}
	}
}

func (n node) durations() []catalog.Duration {
	var all []catalog.Duration
	n.each(func(v node) { all = append(all, v.duration()) })
	if len(all) > maxRetries {
		n.fault("", "the list must have at most %d retry intervals", maxRetries)
	}
	return slices.Clip(all)
}

// Defaults of webhook channels. There are many receivers with few connections each, so the timeout for
// a slow receiver is shorter than for a relay.
const (
	defaultAnswerTimeout  = catalog.Duration(30 * time.Second)
	defaultConnectTimeout = catalog.Duration(10 * time.Second)
)

// webhookFields adds the fields of a webhook channel.
func webhookFields(c *ChannelSpec, all fieldReaders) {
	all["secret_env"] = func(v node) { c.SecretEnv = v.line() }
	all["secret_file"] = func(v node) { c.SecretFile = v.path() }
	all["allow_http"] = func(v node) { c.AllowHTTP = v.yes() }
	all["connect_timeout"] = func(v node) { c.ConnectTimeout = v.duration() }
	all["addresses"] = func(v node) {
		if kind := v.choice("url", phone); kind == phone {
			c.Addresses = kind
		}
	}
	all["url"] = func(v node) { c.URL = v.receiver() }
	all["authorization_env"] = func(v node) { c.AuthorizationEnv = v.line() }
	all["authorization_file"] = func(v node) { c.AuthorizationFile = v.path() }
}

// phone is the kind of the addresses of a channel for text messages.
const phone = "phone"

// receiver reads the URL to which a channel posts all messages.
func (n node) receiver() string {
	normal, err := address.ParseURL(n.line())
	if err != nil {
		n.fail(err)
	}
	return normal
}

// provider checks the settings of a webhook channel that posts all messages to one URL.
func (n node) provider(c *ChannelSpec) {
	n.oneOf("authorization_env", "authorization_file")
	switch {
	case c.Addresses == phone:
		n.needs("url", "set it to the URL of the SMS provider")
	case c.URL == "" && c.AuthorizationEnv+c.AuthorizationFile != "":
		n.fault("set url to the only receiver of the authorization, or remove it", "authorization_env and authorization_file are only valid with url")
	}
	if strings.HasPrefix(c.URL, "http://") && !c.AllowHTTP {
		n.fault("use an https URL, or set allow_http", "the URL does not use https")
	}
}
