package config

import (
	"net"
	"strconv"
	"strings"
)

// InboundHello returns the host name in the greeting of the inbound server.
func (c *Config) InboundHello() string {
	if c.InboundName != "" || len(c.InboundDomains) == 0 {
		return c.InboundName
	}
	return c.InboundDomains[0]
}

// validateInbound checks the address and the domains of inbound mail.
func (c *Config) validateInbound(refuse func(key, hint, format string, args ...any)) {
	if c.Inbound != "" {
		host, port, err := net.SplitHostPort(c.Inbound)
		if _, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || strings.ContainsAny(host, " /") {
			refuse("inbound", "use host:port, such as :25", "%q is not a valid listen address", c.Inbound)
		}
		if len(c.InboundDomains) == 0 {
			refuse("inbound_domains", "set it to the domain in returns of your channels, such as bounces.example.org", "must not be empty if inbound is set")
		}
	}
	if c.Inbound == "" && !c.hasMailboxListeners() {
		for _, of := range []struct{ key, value string }{
			{"inbound_name", c.InboundName}, {"inbound_tls_cert", c.InboundTLSCert}, {"inbound_tls_key", c.InboundTLSKey},
		} {
			if of.value != "" {
				refuse(of.key, "set inbound to the address at which the server receives mail, or remove "+of.key, "has no effect without inbound, and without listeners for mailboxes")
			}
		}
	}
	for _, domain := range c.InboundDomains {
		if !mailDomain(domain) {
			refuse("inbound_domains", "write it as bounces.example.org", "%q is not a domain", domain)
		}
	}
	if c.InboundName != "" && !mailDomain(c.InboundName) {
		refuse("inbound_name", "write it as mx.example.org", "%q is not a host name", c.InboundName)
	}
	if (c.InboundTLSCert == "") != (c.InboundTLSKey == "") {
		key := "inbound_tls_key"
		if c.InboundTLSCert == "" {
			key = "inbound_tls_cert"
		}
		refuse(key, "set both inbound_tls_cert and inbound_tls_key, or neither", "must not be empty if the other one is set")
	}
	if host, port, err := net.SplitHostPort(c.Resolver); c.Resolver != "" && (err != nil || host == "" || port == "") {
		refuse("resolver", "use host:port, such as 127.0.0.1:53", "%q is not the address of a DNS server", c.Resolver)
	}
	readable(refuse, "inbound_tls_cert", c.InboundTLSCert)
	readable(refuse, "inbound_tls_key", c.InboundTLSKey)
}

// mailDomain reports whether s consists of labels of ASCII alphanumeric characters and
// hyphens, separated by dots.
func mailDomain(s string) bool {
	if len(s) > 200 || !strings.Contains(s, ".") {
		return false
	}
	for label := range strings.SplitSeq(strings.ToLower(s), ".") {
		if label == "" || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}
