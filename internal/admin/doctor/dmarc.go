package doctor

import (
	"context"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/dmarc"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// maxReports is the maximum number of report addresses that are checked.
const maxReports = 5

// aligned checks the DMARC record of the From domain (RFC 7489), and whether the envelope and signature domains are aligned with it.
func (o *Options) aligned(ctx context.Context, r *Report, z *zone, c *catalog.Channel, author, envelope string) {
	at, place := "DMARC "+author, author
	records, err := z.begins(ctx, "_dmarc."+place, "v=DMARC1")
	if above := organization(author); err == nil && len(records) == 0 && above != author {
		place = above
		records, err = z.begins(ctx, "_dmarc."+place, "v=DMARC1")
	}
	name := "_dmarc." + place
	standard := dkim.ZoneLine(name, "v=DMARC1; p=none; rua=mailto:dmarc@"+place)
	switch {
	case err != nil:
		r.warn(at, mendDNS, "its record could not be looked up: %v", err)
		return
	case len(records) == 0:
		r.warn(at, "add to the DNS: "+standard, "it has no record, but large providers require one from bulk senders")
		return
	case len(records) > 1:
		r.wrong(at, "keep only one record in the DNS, such as: "+dkim.ZoneLine(name, records[0]), "%s has %d records, so receivers use none", name, len(records))
		return
	}
	record, err := dmarc.Parse(records[0][:len("v=DMARC1")] + strings.ToLower(records[0][len("v=DMARC1"):]))
	if err != nil {
		r.wrong(at, "replace it in the DNS, initially with: "+standard, "the record of %s is invalid, so receivers ignore it: %v: %s", name, err, records[0])
		return
	}
	policy := record.Policy
	if place != author && record.SubdomainPolicy != "" {
		policy = record.SubdomainPolicy
	}
	o.reports(ctx, r, z, at, place, record)

	spf := goTogether(envelope, author, record.SPFAlignment)
	var domains, good []string
	for _, k := range c.DKIM {
		if k.From.After(o.Now()) || slices.Contains(domains, k.Domain) {
			continue
		}
		if domains = append(domains, k.Domain); goTogether(k.Domain, author, record.DKIMAlignment) {
			good = append(good, k.Domain)
		}
	}
	asked := map[dmarc.Policy]string{dmarc.PolicyNone: "only to send reports", dmarc.PolicyQuarantine: "to treat it as spam", dmarc.PolicyReject: "to reject it"}[policy]
	sign := "sign with a key of " + author + " (fanfare dkim new " + author + ")"
	switch {
	case !spf && len(good) == 0 && len(domains) == 0:
		r.warn(at, sign+", unless the relay signs, or set the sender of the channel to an address in that domain", "%s is not aligned with From (%s) and channel %s/%s does not sign; for such mail, receivers are asked %s", envelope, modeOf(record.SPFAlignment), c.Service, c.Name, asked)
	case !spf && len(good) == 0:
		level := Warning
		if policy != dmarc.PolicyNone {
			level = Wrong
		}
		r.add(at, level, sign+", or set the sender of the channel to an address in that domain", "neither %s (SPF, %s) nor %s (DKIM, %s) is aligned with From; for such mail, receivers are asked %s",
			envelope, modeOf(record.SPFAlignment), strings.Join(domains, ", "), modeOf(record.DKIMAlignment), asked)
	case len(domains) > 0 && len(good) == 0:
		r.warn(at, sign, "%s (DKIM, %s) is not aligned with From: only SPF counts, which fails for forwarded mail", strings.Join(domains, ", "), modeOf(record.DKIMAlignment))
	default:
		var counts []string
		if spf {
			counts = append(counts, "SPF of "+envelope)
		}
		if len(good) > 0 {
			counts = append(counts, "DKIM of "+strings.Join(good, ", "))
		}
		r.ok(at, "aligned with From: %s; for other mail, receivers are asked %s (%s)", strings.Join(counts, ", "), asked, name)
	}
}

// goTogether reports whether a domain is aligned with the From domain (RFC 7489, section 3.1).
func goTogether(domain, author string, mode dmarc.AlignmentMode) bool {
	return domain == author || mode != dmarc.AlignmentStrict && organization(domain) == organization(author)
}

func modeOf(mode dmarc.AlignmentMode) string {
	if mode == dmarc.AlignmentStrict {
		return "strict"
	}
	return "relaxed"
}

// reports checks whether other domains accept the reports that would be sent to them (RFC 7489, section 7.1).
func (o *Options) reports(ctx context.Context, r *Report, z *zone, at, place string, record *dmarc.Record) {
	all := slices.Concat(record.ReportURIAggregate, record.ReportURIFailure)
	for _, uri := range all[:min(len(all), maxReports)] {
		address, ok := cutFold(uri, "mailto:")
		if !ok || !strings.Contains(address, "@") {
			r.warn(at, "write rua=mailto:dmarc@"+place, "reports would go to %q, which is not a mailto: address", uri)
			continue
		}
		address, _, _ = strings.Cut(address, "!")
		taker := domainOf(address)
		if organization(taker) == organization(place) {
			continue
		}
		name := place + "._report._dmarc." + taker
		if agreed, err := z.begins(ctx, name, "v=DMARC1"); err == nil && len(agreed) == 0 {
			r.warn(at, "ask the owner of "+taker+" to add to the DNS: "+dkim.ZoneLine(name, "v=DMARC1"), "reports would go to %s, which does not accept them", address)
		}
	}
}
