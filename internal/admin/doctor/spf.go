package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/mail/dkim"
)

// Limits of lookups for a record (RFC 7208, section 4.6.4).
const (
	maxLookups   = 10
	maxVoid      = 2  // lookups without a result
	maxExchanges = 10 // hosts of one mx term
)

// spfTerm is a mechanism or a modifier of an SPF record.
type spfTerm struct {
	text      string
	qualifier byte   // qualifier of a mechanism: + - ~ ?
	name      string // in lower case; ends in = if it is a modifier
	domain    string // "" is the domain of the record
}

// parseSPF parses a record (RFC 7208, section 12) whose version was checked.
func parseSPF(record string) (terms []spfTerm, err error) {
	seen := map[string]bool{}
	for _, text := range strings.Fields(record)[1:] {
		t := spfTerm{text: text, qualifier: '+'}
		if i := strings.IndexAny(text, ":/="); i > 0 && text[i] == '=' {
			t.name, t.domain = strings.ToLower(text[:i+1]), text[i+1:]
			if t.name == "redirect=" || t.name == "exp=" {
				if t.domain == "" {
					return nil, fmt.Errorf("%s has no domain", text)
				}
				if seen[t.name] {
					return nil, fmt.Errorf("%s occurs more than once", t.name)
				}
			}
			seen[t.name] = true
			terms = append(terms, t)
			continue
		}
		if strings.ContainsRune("+-~?", rune(text[0])) {
			t.qualifier, text = text[0], text[1:]
		}
		name, value, given := strings.Cut(text, ":")
		name, length, short := strings.Cut(name, "/")
		if t.name = strings.ToLower(name); given && !short && !strings.HasPrefix(t.name, "ip") {
			value, length, short = strings.Cut(value, "/")
		}
		if err := t.check(value, length, given, short); err != nil {
			return nil, err
		}
		terms = append(terms, t)
	}
	return terms, nil
}

// check validates the value of a mechanism, and stores it.
func (t *spfTerm) check(value, length string, given, short bool) error {
	t.domain = value
	switch t.name {
	case "all":
		if given || short {
			return fmt.Errorf("%s has a value, but the mechanism all cannot have one", t.text)
		}
	case "include", "exists":
		if value == "" || short {
			return fmt.Errorf("%s must have a domain", t.text)
		}
	case "a", "mx":
		if given && value == "" || short && !isLength(length) {
			return fmt.Errorf("%s is not of the form %s:domain/length", t.text, t.name)
		}
	case "ptr":
		if given && value == "" || short {
			return fmt.Errorf("%s is not of the form ptr:domain", t.text)
		}
	case "ip4", "ip6":
		address, err := netip.ParseAddr(value)
		if prefix, failed := netip.ParsePrefix(value); failed == nil {
			address, err = prefix.Addr(), nil
		}
		if err != nil || address.Is4() != (t.name == "ip4") {
			return fmt.Errorf("%s does not contain a valid IP address of the required version", t.text)
		}
	default:
		return fmt.Errorf("%s is not an SPF term", t.text)
	}
	return nil
}

// isLength reports whether a text is a network prefix length: 24, 24//64 or /64.
func isLength(text string) bool {
	four, six, both := strings.Cut("/"+text, "//")
	if four = strings.TrimPrefix(four, "/"); four == "" && !both {
		return false
	}
	for s, most := range map[string]int{four: 32, six: 128} {
		if n, err := strconv.Atoi(s); s != "" && (err != nil || n < 0 || n > most) {
			return false
		}
	}
	return !both || six != ""
}

// spfWalk counts the lookups of a receiver that evaluates all terms of a record.
type spfWalk struct {
	options       *Options
	zone          *zone
	lookups, void int
	open          string // the term, other than all, that permits every sender
}

// errSPF is an error that makes receivers ignore the whole record.
type errSPF struct{ text string }

func (e errSPF) Error() string { return e.text }

// follow evaluates the terms of the SPF record of a domain. It returns the qualifier for all other senders (- ~ ? or +), or 0 without one.
func (w *spfWalk) follow(ctx context.Context, domain string, terms []spfTerm) (others byte, err error) {
	redirect := ""
	for _, t := range terms {
		if t.name == "all" {
			w.open = ""
			return t.qualifier, nil // evaluation ends here
		}
		if t.name == "redirect=" {
			redirect = t.domain
			continue
		}
		if !slices.Contains([]string{"include", "a", "mx", "ptr", "exists"}, t.name) {
			continue
		}
		if w.lookups++; w.lookups > maxLookups {
			return 0, errSPF{fmt.Sprintf("it requires more than %d lookups; the first lookup above the limit is %s of %s", maxLookups, t.text, domain)}
		}
		at := t.domain
		if at == "" {
			at = domain
		}
		if strings.ContainsRune(at, '%') { // depends on the message
			continue
		}
		matches, err := w.term(ctx, t, at)
		if err != nil {
			return 0, err
		}
		if w.void > maxVoid {
			return 0, errSPF{fmt.Sprintf("more than %d of its names are not in the DNS; the first name above the limit is %s of %s", maxVoid, t.text, domain)}
		}
		if matches {
			w.open = t.text
			return t.qualifier, nil
		}
	}
	if redirect == "" || strings.ContainsRune(redirect, '%') {
		return 0, nil
	}
	if w.lookups++; w.lookups > maxLookups {
		return 0, errSPF{fmt.Sprintf("it requires more than %d lookups; the first lookup above the limit is redirect=%s", maxLookups, redirect)}
	}
	return w.enter(ctx, redirect, "redirect="+redirect)
}

// term looks up the names of a term. It reports whether the term matches every sender: an include of a record that
// permits everybody, or exists with a name that exists.
func (w *spfWalk) term(ctx context.Context, t spfTerm, at string) (matches bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch t.name {
	case "include":
		others, err := w.enter(ctx, at, t.text)
		return others == '+', err
	case "a", "exists":
		_, err = w.options.LookupHost(ctx, at+".")
	case "mx":
		var hosts []string
		if hosts, err = w.options.LookupMX(ctx, at+"."); len(hosts) > maxExchanges {
			return false, errSPF{fmt.Sprintf("%s has %d hosts; at most %d are allowed", t.text, len(hosts), maxExchanges)}
		}
	}
	if isMissing(err) {
		w.void++
		return false, nil
	}
	w.zone.heard(err)
	return t.name == "exists" && err == nil, err
}

// enter evaluates the record of another domain.
func (w *spfWalk) enter(ctx context.Context, domain, term string) (byte, error) {
	records, err := w.zone.begins(ctx, domain, "v=spf1")
	switch {
	case err != nil:
		return 0, err
	case len(records) != 1:
		return 0, errSPF{fmt.Sprintf("%s refers to a domain with %d SPF records instead of one", term, len(records))}
	}
	terms, err := parseSPF(records[0])
	if err != nil {
		return 0, errSPF{fmt.Sprintf("%s: %v", term, err)}
	}
	return w.follow(ctx, domain, terms)
}

// faultOf distinguishes an error in a record from a DNS server that does not respond.
func faultOf(err error) (fault errSPF, ok bool) { return fault, errors.As(err, &fault) }

// senders checks the SPF record of the envelope domain (RFC 7208). It cannot check whether the record covers the relays, because their
// outgoing addresses are unknown.
func (o *Options) senders(ctx context.Context, r *Report, z *zone, c *catalog.Channel, domain string) {
	at := "SPF " + domain
	records, err := z.begins(ctx, domain, "v=spf1")
	switch {
	case err != nil:
		r.warn(at, mendDNS, "its record could not be looked up: %v", err)
		return
	case len(records) == 0:
		record, but := permits(c)
		r.warn(at, "add to the DNS: "+dkim.ZoneLine(domain, record)+but, "it has no record, so receivers cannot distinguish its mail from forged mail")
		return
	case len(records) > 1:
		r.wrong(at, "keep only one record in the DNS, such as: "+dkim.ZoneLine(domain, united(records)), "it has %d records, so receivers use none", len(records))
		return
	}
	terms, err := parseSPF(records[0])
	if err != nil {
		r.wrong(at, "correct it: "+dkim.ZoneLine(domain, records[0]), "its record is invalid: %v", err)
		return
	}
	w := &spfWalk{options: o, zone: z}
	others, err := w.follow(ctx, domain, terms)
	if fault, ok := faultOf(err); ok {
		r.wrong(at, "replace names with addresses (ip4:, ip6:) in: "+dkim.ZoneLine(domain, records[0]), "receivers ignore its record: %s", fault.text)
		return
	}
	if err != nil {
		r.warn(at, mendDNS, "the names in its record could not be looked up: %v", err)
		return
	}
	if others == '+' && w.open != "" {
		r.warn(at, "remove "+w.open+", or ask its operator to correct it", "its record permits every sender because of %s: %s", w.open, records[0])
		return
	}
	if others != '-' && others != '~' {
		says := map[byte]string{'+': "permits every sender (+all)", '?': "does not restrict other senders (?all)", 0: "does not restrict other senders"}[others]
		r.warn(at, "end it with ~all or -all: "+dkim.ZoneLine(domain, united(records)), "its record %s: %s", says, records[0])
		return
	}
	if i := slices.IndexFunc(terms, func(t spfTerm) bool { return t.name == "ptr" }); i >= 0 {
		r.warn(at, "use addresses (ip4: and ip6:) instead", "its record contains %s, which is slow and ignored by many receivers (RFC 7208, section 5.5): %s", terms[i].text, records[0])
		return
	}
	r.ok(at, "%s (%d of %d lookups)", records[0], w.lookups, maxLookups)
}

// permits returns a record that permits the relays of a channel, and a note about it.
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
			term, but = "ip4:ADDRESS", ", where ADDRESS is the sending IP address of the relay"
		}
		if !slices.Contains(terms, term) {
			terms = append(terms, term)
		}
	}
	if but == "" {
		but = ", or with the include: documented by the operator of the relay"
	}
	return strings.Join(append(terms, "~all"), " "), but
}

// united returns one record with the terms of several records, without duplicates, that permits no other senders.
func united(records []string) string {
	all, last := []string{"v=spf1"}, "~all"
	for _, record := range records {
		for _, term := range strings.Fields(record)[1:] {
			bare := strings.ToLower(strings.TrimLeft(term, "+-~?"))
			if to, is := strings.CutPrefix(bare, "redirect="); is { // used only if there is no all
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
