package doctor

import (
	"context"
	"errors"
	"net"
	"net/mail"
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"fanfare.dev/fanfare/internal/catalog"
)

// mail checks the DNS records of the domains from which the channels send: whether SPF allows the relays, whether the DKIM keys are published,
// and whether both align with From as DMARC requires. It checks nothing if mail is captured, since no receiver would look up the records.
func (o *Options) mail(ctx context.Context, r *Report, channels []*catalog.Channel) {
	if o.Config.Capture != "" {
		return
	}
	z := &zone{lookup: o.LookupTXT, known: map[string]answer{}}
	for _, c := range channels {
		if c.Driver != "smtp" {
			continue
		}
		of := &Report{}
		o.postmark(ctx, of, z, c)
		r.merge(of) // other channels may have the same domain
		if z.silent != nil {
			return // the other channels would wait just as long
		}
	}
}

// postmark checks one channel.
func (o *Options) postmark(ctx context.Context, r *Report, z *zone, c *catalog.Channel) {
	from, err := mail.ParseAddress(c.From)
	if err != nil {
		return // the channel sends no mail
	}
	author, envelope := domainOf(from.Address), c.Returns
	if envelope == "" {
		envelope = author
		if c.Sender != "" {
			envelope = domainOf(c.Sender)
		}
	}
	if reserved(author) {
		r.ok("DMARC "+author, "the domain is reserved (RFC 2606, RFC 6761): its DNS records do not matter")
		return
	}
	o.senders(ctx, r, z, c, envelope)
	o.signatures(ctx, r, z, c)
	o.aligned(ctx, r, z, c, author, envelope)
}

// domainOf returns the domain of an address in the form that the DNS uses.
func domainOf(address string) string {
	domain := strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		return ascii
	}
	return domain
}

// organization returns the registered domain of a name (RFC 7489, section 3.2).
func organization(domain string) string {
	if found, err := publicsuffix.EffectiveTLDPlusOne(domain); err == nil {
		return found
	}
	return domain
}

// reserved reports whether a domain is reserved for documentation, tests or private networks.
func reserved(domain string) bool {
	labels := strings.Split(domain, ".")
	if len(labels) == 1 {
		return true
	}
	last := labels[len(labels)-1]
	return slices.Contains([]string{"test", "example", "invalid", "localhost", "local", "internal"}, last) ||
		labels[len(labels)-2] == "example" && slices.Contains([]string{"com", "net", "org"}, last)
}

// A zone looks up TXT records, once for each name.
type zone struct {
	lookup func(ctx context.Context, name string) ([]string, error)
	known  map[string]answer
	silent error // error of the resolver, which is then not used again
}

type answer struct {
	texts []string
	err   error
}

// texts returns the TXT records of a name, and no records if the name does not exist.
func (z *zone) texts(ctx context.Context, name string) ([]string, error) {
	if z.silent != nil {
		return nil, z.silent
	}
	if a, ok := z.known[name]; ok {
		return a.texts, a.err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	texts, err := z.lookup(ctx, name+".") // without search domains
	if isMissing(err) {
		texts, err = nil, nil
	}
	z.heard(err)
	z.known[name] = answer{texts, err}
	return texts, err
}

// heard records that the resolver does not respond.
func (z *zone) heard(err error) {
	e, ok := errors.AsType[*net.DNSError](err)
	if ok && e.IsTimeout || errors.Is(err, context.DeadlineExceeded) {
		z.silent = err
	}
}

// begins returns the TXT records of a name that begin with a version tag.
func (z *zone) begins(ctx context.Context, name, version string) (all []string, err error) {
	texts, err := z.texts(ctx, name)
	for _, text := range texts {
		if rest, ok := cutFold(text, version); ok && (rest == "" || strings.ContainsAny(rest[:1], " \t;")) {
			all = append(all, text)
		}
	}
	return all, err
}

func cutFold(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// isMissing reports whether a name, or its records of a type, do not exist.
func isMissing(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

const mendDNS = "check /etc/resolv.conf and the name servers of the domain"
