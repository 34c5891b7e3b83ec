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

// inbound looks at whether what comes back of mails finds the server.
func (o *Options) inbound(ctx context.Context, r *Report, channels []*catalog.Channel) {
	c := &o.Config
	for _, channel := range channels {
		at := "channel " + channel.Service + "/" + channel.Name
		if channel.Returns != "" && !slices.ContainsFunc(c.InboundDomains, func(d string) bool { return strings.EqualFold(d, channel.Returns) }) {
			r.warn(at, "add it to inbound_domains, or take returns from the channel", "bounces go to %s, of which this server takes no mail", channel.Returns)
		}
	}
	if c.Inbound == "" {
		return
	}
	if _, port, _ := net.SplitHostPort(c.Inbound); port != "25" {
		r.warn("inbound", "have port 25 forwarded to it, or let it listen there (setcap cap_net_bind_service=+ep)", "mail servers of others knock at port 25, and it listens at %s", c.Inbound)
	}
	for _, domain := range c.InboundDomains {
		o.exchanger(ctx, r, domain)
	}
	if c.InboundTLSCert == "" {
		r.warn("inbound_tls_cert", "name a certificate and its key in inbound_tls_cert and inbound_tls_key", "bounces come in without TLS, and have addresses of people in them")
		return
	}
	pair, err := tls.LoadX509KeyPair(c.InboundTLSCert, c.InboundTLSKey)
	switch {
	case err != nil:
		r.wrong("inbound_tls_cert", "name the chain in inbound_tls_cert and the key that belongs to it in inbound_tls_key", "%v", err)
	case o.Now().After(pair.Leaf.NotAfter):
		r.wrong("inbound_tls_cert", "renew it, and restart the server", "it ended on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	case pair.Leaf.NotAfter.Sub(o.Now()) < soon:
		r.warn("inbound_tls_cert", "renew it, and restart the server", "it ends on %s", pair.Leaf.NotAfter.Format(time.DateOnly))
	default:
		r.ok("inbound_tls_cert", "it is for %s, until %s", strings.Join(pair.Leaf.DNSNames, ", "), pair.Leaf.NotAfter.Format(time.DateOnly))
	}
}

// exchanger looks up who takes the mail of a domain. Whether that is this machine
// cannot be seen from inside: there may be a gateway between.
func (o *Options) exchanger(ctx context.Context, r *Report, domain string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	name := o.Config.InboundHello()
	at := "inbound_domains " + domain
	hosts, err := o.LookupMX(ctx, domain)
	switch {
	case isMissing(err):
		r.warn(at, "add to the DNS: "+domain+". MX 10 "+name+".", "it has no MX record, so that bounces do not find the server: %v", err)
		return
	case err != nil:
		r.warn(at, mendDNS, "whether bounces find the server cannot be told: %v", err)
		return
	}
	for i := range hosts {
		hosts[i] = strings.ToLower(strings.TrimSuffix(hosts[i], "."))
	}
	if !slices.Contains(hosts, strings.ToLower(name)) {
		r.warn(at, "name the host of the record in inbound_name, unless a gateway stands in between", "its mail goes to %s, and this server calls itself %s", strings.Join(hosts, ", "), name)
		return
	}
	found, err := o.lookUp(ctx, name)
	if err != nil {
		r.warn(at, "add an address of "+name+" to the DNS", "%v", err)
		return
	}
	r.ok(at, "its mail goes to %s, which is %s", name, found)
}
