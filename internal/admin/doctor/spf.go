package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Bounds of what a record may have receivers look up (RFC 7208, section 4.6.4).
const (
	maxLookups   = 10
	maxVoid      = 2  // lookups that find nothing
	maxExchanges = 10 // hosts of one mx
)

// A spfTerm is a mechanism or a modifier of a record for SPF.
type spfTerm struct {
	text      string
	qualifier byte   // of a mechanism: + - ~ ?
	name      string // in lower case; ends in = if it is a modifier
	domain    string // "" is the domain of the record
}

// parseSPF reads a record (RFC 7208, section 12), of which the version is known.
func parseSPF(record string) (terms []spfTerm, err error) {
	seen := map[string]bool{}
	for _, text := range strings.Fields(record)[1:] {
		t := spfTerm{text: text, qualifier: '+'}
		if i := strings.IndexAny(text, ":/="); i > 0 && text[i] == '=' {
			t.name, t.domain = strings.ToLower(text[:i+1]), text[i+1:]
			if known := t.name == "redirect=" || t.name == "exp="; known && (t.domain == "" || seen[t.name]) {
				return nil, fmt.Errorf("%s has to name one domain, once", text)
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

// check says whether a mechanism may have the value that it has, and takes it.
func (t *spfTerm) check(value, length string, given, short bool) error {
	t.domain = value
	switch t.name {
	case "all":
		if given || short {
			return fmt.Errorf("%s has a value, which all may not", t.text)
		}
	case "include", "exists":
		if value == "" || short {
			return fmt.Errorf("%s has to name a domain", t.text)
		}
	case "a", "mx":
		if given && value == "" || short && !isLength(length) {
			return fmt.Errorf("%s is not %s:domain/length", t.text, t.name)
		}
	case "ptr":
		if given && value == "" || short {
			return fmt.Errorf("%s is not ptr:domain", t.text)
		}
	case "ip4", "ip6":
		address, err := netip.ParseAddr(value)
		if prefix, failed := netip.ParsePrefix(value); failed == nil {
			address, err = prefix.Addr(), nil
		}
		if err != nil || address.Is4() != (t.name == "ip4") {
			return fmt.Errorf("%s has no address of that kind", t.text)
		}
	default:
		return fmt.Errorf("%s is not known", t.text)
	}
	return nil
}

// isLength reports whether a text is the length of a network: 24, 24//64, or /64.
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

// A spfWalk counts what receivers look up for a record, all of whose terms they try.
type spfWalk struct {
	options       *Options
	zone          *zone
	lookups, void int
}

// errSPF is a fault for which receivers take the whole record for none.
type errSPF struct{ text string }

func (e errSPF) Error() string { return e.text }

// follow goes through the terms of a domain's record, and returns what it says of all
// others: - ~ ? or +, and 0 where it says nothing.
func (w *spfWalk) follow(ctx context.Context, domain string, terms []spfTerm) (others byte, err error) {
	redirect := ""
	for _, t := range terms {
		if t.name == "all" {
			return t.qualifier, nil // nobody looks further
		}
		if t.name == "redirect=" {
			redirect = t.domain
			continue
		}
		if !slices.Contains([]string{"include", "a", "mx", "ptr", "exists"}, t.name) {
			continue
		}
		if w.lookups++; w.lookups > maxLookups {
			return 0, errSPF{fmt.Sprintf("it has receivers look up more than %d names; the one too many is %s of %s", maxLookups, t.text, domain)}
		}
		at := t.domain
		if at == "" {
			at = domain
		}
		if strings.ContainsRune(at, '%') { // depends on the message
			continue
		}
		if err := w.term(ctx, t, at); err != nil {
			return 0, err
		}
		if w.void > maxVoid {
			return 0, errSPF{fmt.Sprintf("more than %d of its names are not in the DNS; the one too many is %s of %s", maxVoid, t.text, domain)}
		}
	}
	if redirect == "" || strings.ContainsRune(redirect, '%') {
		return 0, nil
	}
	if w.lookups++; w.lookups > maxLookups {
		return 0, errSPF{fmt.Sprintf("it has receivers look up more than %d names; the one too many is redirect=%s", maxLookups, redirect)}
	}
	return w.enter(ctx, redirect, "redirect="+redirect)
}

// term looks up what a term names.
func (w *spfWalk) term(ctx context.Context, t spfTerm, at string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	switch t.name {
	case "include":
		_, err = w.enter(ctx, at, t.text)
		return err
	case "a":
		_, err = w.options.LookupHost(ctx, at+".")
	case "mx":
		var hosts []string
		if hosts, err = w.options.LookupMX(ctx, at+"."); len(hosts) > maxExchanges {
			return errSPF{fmt.Sprintf("%s has %d hosts, more than %d", t.text, len(hosts), maxExchanges)}
		}
	}
	if isMissing(err) {
		w.void++
		return nil
	}
	w.zone.heard(err)
	return err
}

// enter goes on with the record of another domain.
func (w *spfWalk) enter(ctx context.Context, domain, term string) (byte, error) {
	records, err := w.zone.begins(ctx, domain, "v=spf1")
	switch {
	case err != nil:
		return 0, err
	case len(records) != 1:
		return 0, errSPF{fmt.Sprintf("%s names a domain with %d records for SPF, and it has to have one", term, len(records))}
	}
	terms, err := parseSPF(records[0])
	if err != nil {
		return 0, errSPF{fmt.Sprintf("%s: %v", term, err)}
	}
	return w.follow(ctx, domain, terms)
}

// faultOf tells what is wrong with a record from a DNS that does not answer.
func faultOf(err error) (fault errSPF, ok bool) { return fault, errors.As(err, &fault) }
