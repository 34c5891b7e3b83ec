// Package addresskind has the kinds of addresses: mail, URL and phone number. The catalog derives the kind from the
// driver of a channel, and the registry from the address itself. It keeps no state.
package addresskind

import (
	"slices"
	"strings"
)

// Kinds of address. The numbers are stored.
const (
	Mail  uint8 = 1
	URL   uint8 = 2
	Phone uint8 = 3
)

// Names has the names of the kinds. The hash that chooses the partition of a subscriber uses them.
// Kind 0 is no address: the hash then uses the id instead.
var Names = [...]string{Mail: "mail", URL: "url", Phone: "phone"}

// Parse returns the kind with a name, 0 for an unknown name.
func Parse(name string) uint8 {
	return uint8(max(slices.Index(Names[1:], name)+1, 0))
}

// OfAddress returns the kind of an address by its spelling: no mail address begins like a URL, or
// consists of digits and the punctuation of phone numbers.
func OfAddress(address string) uint8 {
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") {
		return URL
	}
	if address != "" && strings.ContainsAny(address, "0123456789") && strings.Trim(address, "+0123456789 ()-./\u00a0") == "" {
		return Phone
	}
	return Mail
}
