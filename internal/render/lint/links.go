package lint

import (
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// A fault is what is wrong with an address.
type addressFault struct{ rule, message, hint string }

// checkAddress says what is wrong with the address of a link or of an image in a mail,
// by its shape alone; nil where nothing is, or where a value decides.
func checkAddress(address string) *addressFault {
	address = strings.TrimSpace(address)
	if strings.Trim(address, "#\x1b") == "" {
		return &addressFault{LinkEmpty, "it leads nowhere", "give it an address, or leave the link away"}
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
		return &addressFault{LinkBroken, shown + " is relative, and a mail stands on no page", "write the whole address, from https:// on"}
	}
	switch strings.ToLower(scheme) {
	case "mailto":
		if !strings.Contains(rest, "@") && !hasLiquid(rest) {
			return &addressFault{LinkBroken, shown + " has no mail address", "write mailto:name@example.org"}
		}
		return nil
	case "tel", "sms":
		return nil
	case "http", "https":
	default:
		if hasLiquid(scheme) {
			return nil
		}
		return &addressFault{LinkBroken, scheme + ": is nothing that mail readers follow", "write an address with https, mailto or tel"}
	}
	u, err := url.Parse(strings.NewReplacer("\x1a", "x", "\x1b", "x").Replace(address))
	if err != nil || u.Hostname() == "" || strings.ContainsAny(address, " \t\n<>\"") {
		return &addressFault{LinkBroken, shown + " is not an address", "write spaces as %20, and https:// with two slashes"}
	}
	if host := hostOf(address); host != "" && private(host) {
		return &addressFault{LinkPrivate, host + " is known only where it was written", "write the address that the world knows"}
	}
	if strings.EqualFold(scheme, "http") {
		return &addressFault{LinkInsecure, shown + " is not encrypted, and filters mind it", "write https"}
	}
	return nil
}

// shortAddress is the address as a message shows it.
func shortAddress(address string) string {
	const most = 80
	address = values.ReplaceAllString(address, "…")
	if runes := []rune(address); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return address
}

var values = regexp.MustCompile("[\x1a\x1b]+")

// hostOf is the host of an address that its author wrote out, or "".
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

// private reports whether a host means something else elsewhere, or nothing.
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

// hostInText is the host that words name which are an address themselves, or "".
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

// sameSite reports whether one of two hosts is the other, or below it.
func sameSite(a, b string) bool {
	a, b = strings.TrimPrefix(a, "www."), strings.TrimPrefix(b, "www.")
	return a == b || strings.HasSuffix(a, "."+b) || strings.HasSuffix(b, "."+a)
}

// vagueLinkTexts are words that do not say where a link leads to who hears only them.
var vagueLinkTexts = map[string]bool{"here": true, "click here": true, "this link": true, "link": true, "click": true, "hier": true, "hier klicken": true}
