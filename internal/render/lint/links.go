package lint

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// An addressFault says what is wrong with an address.
type addressFault struct{ rule, message, hint string }

// checkAddress checks the address of a link or an image in a mail by its syntax; it returns nil
// if nothing is wrong, or if a value decides.
func checkAddress(address string) *addressFault {
	address = strings.TrimSpace(address)
	if strings.Trim(address, "#\x1b") == "" {
		return &addressFault{LinkEmpty, "it has no address", "add an address, or remove it"}
	}
	if hasLiquid(address[:1]) {
		return nil
	}
	shown := shortAddress(address)
	scheme, rest, hasScheme := strings.Cut(address, ":")
	if hasScheme && strings.ContainsAny(scheme, "/?#.") {
		hasScheme = false
	}
	switch {
	case address[0] == '#':
		return nil
	case !hasScheme:
		return &addressFault{LinkBroken, shown + " is a relative address, which does not work in email", "write the full address, beginning with https://"}
	}
	switch strings.ToLower(scheme) {
	case "mailto":
		if !strings.Contains(rest, "@") && !hasLiquid(rest) {
			return &addressFault{LinkBroken, shown + " has no email address", "write mailto:name@example.org"}
		}
		return nil
	case "tel", "sms":
		return nil
	case "http", "https":
	default:
		if hasLiquid(scheme) {
			return nil
		}
		return &addressFault{LinkBroken, scheme + ": is a scheme that email clients do not open", "use https, mailto or tel"}
	}
	u, err := url.Parse(strings.NewReplacer("\x1a", "x", "\x1b", "x").Replace(address))
	if err != nil || u.Hostname() == "" || strings.ContainsAny(address, " \t\n<>\"") {
		return &addressFault{LinkBroken, shown + " is not a valid address", "write spaces as %20, and use two slashes after https:"}
	}
	if host := hostOf(address); host != "" && private(host) {
		return &addressFault{LinkPrivate, host + " is only reachable in a private network", "use a public address"}
	}
	if strings.EqualFold(scheme, "http") {
		return &addressFault{LinkInsecure, shown + " does not use https, which spam filters penalize", "use https"}
	}
	return nil
}

// shortAddress shortens an address for a message.
func shortAddress(address string) string {
	const most = 80
	address = values.ReplaceAllString(address, "…")
	if runes := []rune(address); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return address
}

var values = regexp.MustCompile("[\x1a\x1b]+")

// hostOf returns the host of an address, "" if a value decides.
func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	if hasLiquid(rest) {
		return ""
	}
	u, err := url.Parse("https://" + rest)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// private reports whether a host is not part of the public Internet.
func private(host string) bool {
	if at, err := netip.ParseAddr(host); err == nil {
		return at.IsPrivate() || at.IsLoopback() || at.IsLinkLocalUnicast() || at.IsUnspecified()
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch last {
	case host, "localhost", "local", "internal", "lan", "test", "invalid":
		return true
	}
	return false
}

// hostInText returns the host if the text of a link is an address, otherwise "".
func hostInText(words string) string {
	words = strings.ToLower(strings.TrimSpace(words))
	if hasLiquid(words) || strings.ContainsAny(words, " \n\t@") {
		return ""
	}
	if !strings.Contains(words, "://") {
		words = "https://" + words
	}
	host := hostOf(words)
	if suffix, known := publicsuffix.PublicSuffix(host); !known || suffix == host {
		return ""
	}
	return host
}

// sameSite reports whether two hosts are the same or one is below the other.
func sameSite(a, b string) bool {
	a, b = strings.TrimPrefix(a, "www."), strings.TrimPrefix(b, "www.")
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

// vagueLinkTexts do not tell a person who hears only the links where they lead.
var vagueLinkTexts = map[string]bool{"here": true, "click here": true, "this link": true, "link": true, "click": true, "hier": true, "hier klicken": true}
