package config

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// IMAPCertificate returns the files of the certificate of the IMAP server and of its key, or "".
func (c *Config) IMAPCertificate() (cert, key string) {
	if c.IMAPTLSCert != "" {
		return c.IMAPTLSCert, c.IMAPTLSKey
	}
	return c.InboundTLSCert, c.InboundTLSKey
}

// PublicMailHost returns the host name that mail programs connect to, or "" if the settings have none.
func (c *Config) PublicMailHost() string {
	switch u, err := url.Parse(c.PublicURL); {
	case c.MailHost != "":
		return strings.ToLower(c.MailHost)
	case c.InboundHello() != "":
		return strings.ToLower(c.InboundHello())
	case err == nil && mailDomain(u.Hostname()):
		return strings.ToLower(u.Hostname())
	}
	return ""
}

// validateIMAP checks the listeners for mail programs.
func (c *Config) validateIMAP(refuse func(key, hint, format string, args ...any)) {
	for _, of := range []struct{ key, value, example string }{{"imap_listen", c.IMAPListen, ":143"}, {"imaps_listen", c.IMAPSListen, ":993"}} {
		if of.value == "" {
			continue
		}
		host, port, err := net.SplitHostPort(of.value)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, " /") {
			refuse(of.key, "use host:port, such as "+of.example, "%q is not a valid listen address", of.value)
			continue
		}
		if cert, _ := c.IMAPCertificate(); cert == "" && (of.key == "imaps_listen" || !isLoopback(host)) {
			refuse(of.key, "set imap_tls_cert and imap_tls_key", "needs a certificate, because logins need TLS")
		}
	}
	if (c.IMAPTLSCert == "") != (c.IMAPTLSKey == "") {
		key := "imap_tls_key"
		if c.IMAPTLSCert == "" {
			key = "imap_tls_cert"
		}
		refuse(key, "set both imap_tls_cert and imap_tls_key, or neither", "must not be empty if the other one is set")
	}
	if c.IMAPTLSCert != "" && c.IMAPListen == "" && c.IMAPSListen == "" {
		refuse("imap_tls_cert", "set imap_listen or imaps_listen, or remove imap_tls_cert", "has no effect without imap_listen and imaps_listen")
	}
	if c.MailHost != "" && !mailDomain(c.MailHost) {
		refuse("mail_host", "write it as mail.example.org", "%q is not a host name", c.MailHost)
	}
	readable(refuse, "imap_tls_cert", c.IMAPTLSCert)
	readable(refuse, "imap_tls_key", c.IMAPTLSKey)
}

// isLoopback reports whether only programs on this machine can connect to a host.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
