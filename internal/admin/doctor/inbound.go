package doctor

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
)

// inbound checks whether bounces reach the server.
func (o *Options) inbound(ctx context.Context, r *Report, channels []*catalog.Channel) {
	c := &o.Config
	for _, channel := range channels {
		at := "channel " + channel.Service + "/" + channel.Name
		if channel.Returns != "" && !slices.ContainsFunc(c.InboundDomains, func(d string) bool { return strings.EqualFold(d, channel.Returns) }) {
			r.warn(at, "add the domain to inbound_domains, or remove returns from the channel", "bounces go to %s, but this server does not accept mail for that domain", channel.Returns)
		}
	}
	if c.Inbound == "" {
		return
	}
	if _, port, _ := net.SplitHostPort(c.Inbound); port != "25" {
		r.warn("inbound", "forward port 25 to the server, or let it listen on port 25 (setcap cap_net_bind_service=+ep)", "other mail servers connect to port 25, but the server listens on %s", c.Inbound)
	}
	for _, domain := range c.InboundDomains {
		o.exchanger(ctx, r, domain)
	}
	if c.InboundTLSCert == "" {
		r.warn("inbound_tls_cert", "set inbound_tls_cert and inbound_tls_key", "bounces are received without TLS, although they contain email addresses")
		return
	}
	pair, err := tls.LoadX509KeyPair(c.InboundTLSCert, c.InboundTLSKey)
	switch {
	case err != nil:
		r.wrong("inbound_tls_cert", "set inbound_tls_cert to the certificate chain and inbound_tls_key to its key", "%v", err)
	case o.Now().After(pair.Leaf.NotAfter):
		r.wrong("inbound_tls_cert", "renew the certificate, and restart the server", "it expired on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	case pair.Leaf.NotAfter.Sub(o.Now()) < soon:
		r.warn("inbound_tls_cert", "renew the certificate, and restart the server", "it expires on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	default:
		r.ok("inbound_tls_cert", "it is valid for %s until %s", strings.Join(pair.Leaf.DNSNames, ", "), pair.Leaf.NotAfter.Format(time.DateOnly))
	}
}

// exchanger checks the mail exchangers of a domain. It cannot check whether they lead to this machine, because there may
// be a gateway in between.
func (o *Options) exchanger(ctx context.Context, r *Report, domain string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := o.Config.InboundHello()
	at := "inbound_domains " + domain
	hosts, err := o.LookupMX(ctx, domain)
	switch {
	case isMissing(err):
		r.warn(at, "add to the DNS: "+domain+". MX 10 "+name+".", "it has no MX record, so bounces do not reach the server: %v", err)
		return
	case err != nil:
		r.warn(at, mendDNS, "cannot determine whether bounces reach the server: %v", err)
		return
	}
	for i := range hosts {
		hosts[i] = strings.ToLower(strings.TrimSuffix(hosts[i], "."))
	}
	if !slices.Contains(hosts, strings.ToLower(name)) {
		r.warn(at, "set inbound_name to the host in the record, unless a gateway is in between", "its mail goes to %s, but the name of this server is %s", strings.Join(hosts, ", "), name)
		return
	}
	found, err := o.lookUp(ctx, name)
	if err != nil {
		r.warn(at, "add an address for "+name+" to the DNS", "%v", err)
		return
	}
	r.ok(at, "its mail goes to %s, which is %s", name, found)
}
