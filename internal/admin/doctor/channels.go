package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
)

// channels checks each channel, and returns all.
func (o *Options) channels(ctx context.Context, r *Report) []*catalog.Channel {
	list, err := o.Channels(ctx)
	if err != nil {
		mend := "run this command as the user that runs the server"
		if !o.Config.SQLite() {
			mend = "fix the database problems first"
		}
		r.warn("channels", mend, "the configured channels cannot be read: %v", err)
		return nil
	}
	if len(list) == 0 {
		r.ok("channels", "no channel is configured yet")
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
			r.ok(check, "the channel has no external parts to check")
		}
	}
	return list
}

// secrets checks whether the secrets of a channel can be read. It skips the secrets that a session with the relay tests.
func (o *Options) secrets(r *Report, check string, c *catalog.Channel) {
	if o.told(check) {
		return
	}
	const mend = "make the file readable for the user that runs the server, or configure another file in the channel"
	if c.Driver == "webhook" {
		if _, err := c.Secrets(); err != nil {
			unreadable(r, check, mend, c.SecretFile, "secret", err)
		}
		if _, err := c.Authorization(); err != nil {
			unreadable(r, check, mend, c.AuthorizationFile, "authorization", err)
		}
	}
	if c.Receipts.SecretEnv+c.Receipts.SecretFile == "" {
		return
	}
	if _, err := c.ReceiptSecrets(); err != nil {
		unreadable(r, check, mend, c.Receipts.SecretFile, "receipt secret", err)
	}
}

func folder(r *Report, check, path string) {
	above := existing(path)
	if unix.Access(above, unix.W_OK|unix.X_OK) != nil {
		r.wrong(check, "change the owner of the folder to the user that runs the server", "this user cannot write to %s", above)
		return
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		r.ok(check, "%s does not exist yet; the server creates it", path)
	case err != nil:
		r.wrong(check, "set path to a folder that the user that runs the server can access", "%v", err)
	default:
		r.ok(check, "%s is writable", path)
	}
}

func (o *Options) relay(ctx context.Context, r *Report, check string, c *catalog.Channel) {
	host, _, err := net.SplitHostPort(c.Relay)
	if err != nil {
		r.wrong(check, "write it as host:port", "the relay %q is not a valid address", c.Relay)
		return
	}
	if _, err := o.lookUp(ctx, host); err != nil {
		r.wrong(check, "correct the relay setting, or check /etc/resolv.conf", "%v", err)
		return
	}
	open := *c
	password, err := c.Password()
	if err != nil {
		open.Username = "" // check the rest without a login
		_, missing := os.Stat(c.PasswordFile)
		switch {
		case o.told(check):
		case c.PasswordFile != "" && errors.Is(missing, fs.ErrNotExist):
			r.wrong(check, "make the file readable for the user that runs the server, or configure another file in the channel", "the password cannot be read: %v", err)
		default:
			r.warn(check, "to test the login, also set the variable in the environment of this command", "the password cannot be read here: %v", err)
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
		r.warn(check, "install a certificate for the name of the relay; with tls: required, the server would refuse the connection", "%s: its certificate is not trusted: %v", c.Relay, s.Untrusted)
	}
	if s.TLS == "" && isName(host) {
		r.warn(check, "configure STARTTLS on the relay, or connect over a private network", "%s: the connection is not encrypted", c.Relay)
	}
	secure := "without TLS"
	if s.TLS != "" {
		secure = s.TLS
	}
	login := ""
	if s.Authenticated {
		login = ", logged in as " + c.Username
	}
	r.ok(check, "%s replies %q; %s%s; %s", c.Relay, s.Banner, secure, login, strings.Join(s.Extensions, " "))
}

// mendOf returns how to fix a failed connection.
func mendOf(err error) string {
	text := err.Error()
	for _, one := range []struct{ sign, mend string }{
		{"AUTH", "correct the settings username and password_env or password_file"},
		{"password", "set tls to required, or use a relay on this machine"},
		{"TLS", "correct the tls setting or the certificate of the relay"},
		{"certificate", "correct the tls setting or the certificate of the relay"},
		{"refused", "start the mail server, or correct the relay setting"},
		{"i/o timeout", "check the firewall: the port may be blocked from this network (port 25 often is)"},
		{"deadline", "check the firewall: the port may be blocked from this network (port 25 often is)"},
		{"no route", "check the network"},
	} {
		if strings.Contains(text, one.sign) {
			return one.mend
		}
	}
	return "correct the relay setting, or check the log of the mail server"
}

// replies checks the reply rules of the operator.
func (o *Options) replies(r *Report) {
	file := o.Config.ReplyRules
	if file == "" {
		return
	}
	rules, err := o.Rules(file)
	if err == nil {
		r.ok("replies", "%d rules in %s take precedence over the built-in rules", rules, file)
		return
	}
	mend := "set reply_rules to a file that the user that runs the server can read"
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		if mend = e.Hint; mend == "" {
			mend = "fanfare replies list --rules " + file + " prints the error"
		}
	}
	r.wrong("replies", mend, "the rules in %s are not used: %v", file, err)
}
