package config

import (
	"net"
	"os"
	"strconv"
	"strings"
)

// MailName returns the host name in the greetings of the LMTP and submission servers.
func (c *Config) MailName() string {
	if name := c.InboundHello(); name != "" {
		return name
	}
	if name, err := os.Hostname(); err == nil && mailDomain(name) {
		return name
	}
	return "localhost.localdomain"
}

// SubmissionCertificate returns the files of the certificate of the submission servers and of its key, or "".
func (c *Config) SubmissionCertificate() (cert, key string) {
	if c.SubmissionTLSCert != "" {
		return c.SubmissionTLSCert, c.SubmissionTLSKey
	}
	return c.InboundTLSCert, c.InboundTLSKey
}

// hasMailboxListeners reports whether there are listeners for mailboxes, which use the name and the certificate of inbound mail.
func (c *Config) hasMailboxListeners() bool {
	return c.LMTPListen != "" || c.SubmissionListen != "" || c.SubmissionsListen != "" || c.IMAPListen != "" || c.IMAPSListen != ""
}

// validateMailboxListeners checks the listeners for mail to mailboxes and from them.
func (c *Config) validateMailboxListeners(refuse func(key, hint, format string, args ...any)) {
	for _, of := range []struct{ key, value, example string }{
		{"lmtp_listen", c.LMTPListen, "127.0.0.1:24"}, {"submission_listen", c.SubmissionListen, ":587"}, {"submissions_listen", c.SubmissionsListen, ":465"},
	} {
		if of.value == "" {
			continue
		}
		host, port, err := net.SplitHostPort(of.value)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, " /") {
			refuse(of.key, "use host:port, such as "+of.example, "%q is not a valid listen address", of.value)
			continue
		}
		if of.key == "lmtp_listen" {
			if port == "25" { // RFC 2033, section 5
				refuse(of.key, "use another port, such as "+of.example, "must not be port 25, which is for SMTP")
			}
		} else if cert, _ := c.SubmissionCertificate(); cert == "" {
			refuse(of.key, "set submission_tls_cert and submission_tls_key", "needs a certificate, because logins need TLS")
		}
	}
	if (c.SubmissionTLSCert == "") != (c.SubmissionTLSKey == "") {
		key := "submission_tls_key"
		if c.SubmissionTLSCert == "" {
			key = "submission_tls_cert"
		}
		refuse(key, "set both submission_tls_cert and submission_tls_key, or neither", "must not be empty if the other one is set")
	}
	if c.SubmissionTLSCert != "" && c.SubmissionListen == "" && c.SubmissionsListen == "" {
		refuse("submission_tls_cert", "set submission_listen or submissions_listen, or remove submission_tls_cert", "has no effect without submission_listen and submissions_listen")
	}
	readable(refuse, "submission_tls_cert", c.SubmissionTLSCert)
	readable(refuse, "submission_tls_key", c.SubmissionTLSKey)
}
