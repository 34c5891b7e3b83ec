package doctor

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// senders looks at who may send with a domain in the envelope (SPF, RFC 7208). Whether
// the relays are among them cannot be seen from here: they have addresses of their own
// when they send.
func (o *Options) senders(ctx context.Context, r *Report, z *zone, c *catalog.Channel, domain string) {
	at := "SPF " + domain
	records, err := z.begins(ctx, domain, "v=spf1")
	switch {
	case err != nil:
		r.warn(at, mendDNS, "its record was not found out: %v", err)
		return
	case len(records) == 0:
		record, but := permits(c)
		r.warn(at, "add to the DNS: "+dkim.ZoneLine(domain, record)+but, "it has no record, so that receivers cannot tell its mail from forged mail")
		return
	case len(records) > 1:
		r.wrong(at, "leave one of them in the DNS, such as: "+dkim.ZoneLine(domain, united(records)), "it has %d records, of which receivers take none", len(records))
		return
	}
	terms, err := parseSPF(records[0])
	if err != nil {
		r.wrong(at, "correct it: "+dkim.ZoneLine(domain, records[0]), "receivers cannot read its record: %v", err)
		return
	}
	w := &spfWalk{options: o, zone: z}
	others, err := w.follow(ctx, domain, terms)
	if fault, ok := faultOf(err); ok {
		r.wrong(at, "write addresses (ip4:, ip6:) instead of names that are not needed, in: "+dkim.ZoneLine(domain, records[0]), "receivers give up on its record: %s", fault.text)
		return
	}
	if err != nil {
		r.warn(at, mendDNS, "what its record names was not found out: %v", err)
		return
	}
	if others != '-' && others != '~' {
		says := map[byte]string{'+': "that anybody may send (+all)", '?': "nothing of others (?all)", 0: "nothing of others"}[others]
		r.warn(at, "let it end in ~all or -all: "+dkim.ZoneLine(domain, united(records)), "its record says %s: %s", says, records[0])
		return
	}
	if i := slices.IndexFunc(terms, func(t spfTerm) bool { return t.name == "ptr" }); i >= 0 {
		r.warn(at, "name addresses instead", "its record has %s, which is slow and which many receivers skip (RFC 7208, section 5.5): %s", terms[i].text, records[0])
		return
	}
	r.ok(at, "%s (%d of %d lookups)", records[0], w.lookups, maxLookups)
}

// permits is a record that lets the relays of a channel send, and what is to be said
// with it.
func permits(c *catalog.Channel) (record, but string) {
	terms := []string{"v=spf1"}
	for _, hop := range c.Hops() {
		host, _, err := net.SplitHostPort(hop.Channel.Relay)
		if err != nil {
			continue
		}
		term := "a:" + host
		address, err := netip.ParseAddr(host)
		switch {
		case err == nil && address.IsGlobalUnicast() && !address.IsPrivate() && address.Is4():
			term = "ip4:" + host
		case err == nil && address.IsGlobalUnicast() && !address.IsPrivate():
			term = "ip6:" + host
		case err == nil || !isName(host):
			term, but = "ip4:ADDRESS", ", where ADDRESS is the one with which the relay reaches others"
		}
		if !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	if but == "" {
		but = ", or with the include: that the operator of the relay tells"
	}
	return strings.Join(append(terms, "~all"), " "), but
}

// united is a record with the terms of all, each once, that lets nobody else send.
func united(records []string) string {
	all, last := []string{"v=spf1"}, "~all"
	for _, record := range records {
		for _, term := range strings.Fields(record)[1:] {
			bare := strings.ToLower(strings.TrimLeft(term, "+-~?"))
			if to, is := strings.CutPrefix(bare, "redirect="); is { // which counts only where nothing is said of all
				term = "include:" + to
			}
			switch {
			case bare == "all" && len(records) > 1 && term[0] == '-':
				last = term
			case bare == "all":
			case !slices.Contains(all, term):
				all = append(all, term)
			}
		}
	}
	return strings.Join(append(all, last), " ")
}
