package registry

import (
	"net"
	"net/mail"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"
)

// Defaults of channels.
const (
	defaultConnections = 50
	defaultSendTimeout = Duration(time.Minute)
	defaultExpiry      = Duration(24 * time.Hour)
	maxConnections     = 1000
	maxRetries         = 50
)

// maxMulticast bounds how many may get a message in one transaction. Every server
// takes 100 (RFC 5321, section 4.5.3.1.8).
const maxMulticast = 1000

// defaultRate is gentle, because an unknown relay is: who knows theirs, raises it.
var defaultRate = Rate{30, time.Second}

// defaultRetry are the waits between attempts; each gets jitter.
var defaultRetry = []Duration{
	Duration(30 * time.Second), Duration(2 * time.Minute), Duration(10 * time.Minute),
	Duration(time.Hour), Duration(4 * time.Hour), Duration(12 * time.Hour),
}

func (p *documentReader) channel(n node) *ChannelSpec {
	c := &ChannelSpec{}
	all := fields{
		"driver":       func(v node) { c.Driver = v.choice("smtp", "file", "webhook") },
		"title":        func(v node) { c.Title = v.label(maxLabelTitle) },
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
		quiet := documentReader{doc: p.doc, anchors: p.anchors} // read for good below
		driver = node{Node: pair.Value, p: &quiet}.text()
	}
	limitFields(c, driver, all)
	unknown := driver != "smtp" && driver != "file" && driver != "webhook" // which is what is wrong then, and no field
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
	if driver == "file" || unknown {
		all["path"] = func(v node) { c.Path = v.path() }
	}
	c.Connections, c.SendTimeout, c.Expiry, c.Retry = defaultConnections, defaultSendTimeout, defaultExpiry, defaultRetry
	if driver == "webhook" || unknown {
		webhookFields(c, all)
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
		c.ChannelSettings = ChannelSettings{}
		return c
	}
	n.needs("driver", "use smtp, file or webhook")
	if driver != "webhook" {
		n.needs("from", "such as Example <news@example.org>")
	}
	switch c.Driver {
	case "webhook":
		n.oneOf("secret_env", "secret_file")
	case "smtp":
		n.relayed(c)
	case "file":
		n.needs("path", "name the folder that mails are written to")
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
		n.fault("write it as Name <name@example.org>", "%s is not a mail address", inputerror.Quote(s))
	}
	return s
}

// address reads an address alone.
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

// maxReturnsBytes leaves room in an address (254 bytes) for what stands before the @.
const maxReturnsBytes = 200

// domain reads a domain of mail addresses, in small letters.
func (n node) domain() string {
	s := n.line()
	small := strings.ToLower(s)
	wrong := len(s) > maxReturnsBytes || !strings.Contains(s, ".")
	for label := range strings.SplitSeq(small, ".") {
		wrong = wrong || label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-'
	}
	if wrong {
		n.fault("write it as bounces.example.org; of a name with other letters its form of xn--", "%s is not a domain for mail", inputerror.Quote(s))
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

func (n node) rate() Rate {
	s := n.text()
	r, err := ParseRate(s)
	if err != nil {
		n.fault("write it as 30/s, 1000/min, 5000/h or unlimited", "%s is not a rate", inputerror.Quote(s))
	}
	return r
}
