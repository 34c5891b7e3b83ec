package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"fanfare.dev/fanfare/internal/catalog"
)

// channels looks at each way out, and returns them.
func (o *Options) channels(ctx context.Context, r *Report) []*catalog.Channel {
	list, err := o.Channels(ctx)
	if err != nil {
		mend := "run this as the user that runs the server"
		if !o.Config.SQLite() {
			mend = "mend the database first"
		}
		r.warn("channels", mend, "what is configured cannot be read: %v", err)
		return nil
	}
	if len(list) == 0 {
		r.ok("channels", "none is configured yet")
	}
	for _, c := range list {
		check := "channel " + c.Service + "/" + c.Name
		if o.Config.Capture == "" || len(o.Config.AllowRecipients) > 0 {
			o.keyFiles(r, c)
			o.secrets(r, check, c)
		}
		switch c.Driver {
		case "smtp":
			for _, hop := range c.Hops() {
				o.relay(ctx, r, check, hop.Channel)
			}
		case "file":
			folder(r, check, c.Path)
		default:
			r.ok(check, "there is nothing to look at outside of the server")
		}
	}
	return list
}

// secrets looks at whether the secrets of a channel can be read that are not tried with its
// relays.
func (o *Options) secrets(r *Report, check string, c *catalog.Channel) {
	if o.told(check) {
		return
	}
	const mend = "make it readable for the user of the server, or name another one in the channel"
	if c.Driver == "webhook" {
		if _, err := c.Secrets(); err != nil {
			unreadable(r, check, mend, c.SecretFile, "secret", err)
		}
	}
	if c.Receipts.SecretEnv+c.Receipts.SecretFile == "" {
		return
	}
	if _, err := c.ReceiptSecrets(); err != nil {
		unreadable(r, check, mend, c.Receipts.SecretFile, "secret of the receipts", err)
	}
}

func folder(r *Report, check, path string) {
	above := existing(path)
	if unix.Access(above, unix.W_OK|unix.X_OK) != nil {
		r.wrong(check, "give it to the user that runs the server", "this user may not write to %s", above)
		return
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		r.ok(check, "%s will be made", path)
	case err != nil:
		r.wrong(check, "name a folder in path that the user of the server may reach", "%v", err)
	default:
		r.ok(check, "%s may be written to", path)
	}
}

func (o *Options) relay(ctx context.Context, r *Report, check string, c *catalog.Channel) {
	host, _, err := net.SplitHostPort(c.Relay)
	if err != nil {
		r.wrong(check, "write it as host:port", "the relay %q is not an address", c.Relay)
		return
	}
	if _, err := o.lookUp(ctx, host); err != nil {
		r.wrong(check, "correct relay, or look at /etc/resolv.conf", "%v", err)
		return
	}
	open := *c
	password, err := c.Password()
	if err != nil {
		open.Username = "" // looked at as far as it goes
		_, missing := os.Stat(c.PasswordFile)
		switch {
		case o.told(check):
		case c.PasswordFile != "" && errors.Is(missing, fs.ErrNotExist):
			r.wrong(check, "make it readable for the user of the server, or name another one in the channel", "the password cannot be read: %v", err)
		default:
			r.warn(check, "the server has its own environment: set it here too, to have the login tried", "the password cannot be read here: %v", err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := o.Probe(ctx, &open, password)
	if err != nil {
		r.wrong(check, mendOf(err), "%s: %v", c.Relay, err)
		return
	}
	if s.Untrusted != nil {
		r.warn(check, "give the relay a certificate that holds for its name; with tls: required it would be refused", "%s: its certificate is not to be trusted: %v", c.Relay, s.Untrusted)
	}
	if s.TLS == "" && isName(host) {
		r.warn(check, "let the relay offer STARTTLS, or reach it over a private network", "%s: what is sent is not encrypted", c.Relay)
	}
	secure := "without TLS"
	if s.TLS != "" {
		secure = s.TLS
	}
	login := ""
	if s.Authenticated {
		login = ", logged in as " + c.Username
	}
	r.ok(check, "%s says %q; %s%s; %s", c.Relay, s.Banner, secure, login, strings.Join(s.Extensions, " "))
}

// mendOf says what to do about a connection that was not made.
func mendOf(err error) string {
	text := err.Error()
	for _, one := range []struct{ sign, mend string }{
		{"AUTH", "correct username and password_env or password_file"},
		{"password", "use tls: required, or a relay on this machine"},
		{"TLS", "correct tls, or the certificate of the relay"},
		{"certificate", "correct tls, or the certificate of the relay"},
		{"refused", "start the mail server, or correct relay"},
		{"i/o timeout", "look at the firewall: the port may be closed from here (25 often is)"},
		{"deadline", "look at the firewall: the port may be closed from here (25 often is)"},
		{"no route", "look at the network"},
	} {
		if strings.Contains(text, one.sign) {
			return one.mend
		}
	}
	return "correct relay, or look at the log of the mail server"
}
