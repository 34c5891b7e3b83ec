package addresskind

import (
	"slices"
	"strings"
)

// Kinds of address. The numbers are stored.
const (
	Mail uint8 = 1
	URL  uint8 = 2
)

// Names is how a kind is spelled, and how it enters the hash that chooses the
// partition. Kind 0 is no address at all: then the id takes its place in the hash.
var Names = [...]string{Mail: "mail", URL: "url"}

// Parse returns the kind with a name, 0 if there is none.
func Parse(name string) uint8 {
	return uint8(max(slices.Index(Names[1:], name)+1, 0))
}

// OfDriver returns the kind of address that a driver sends to.
func OfDriver(driver string) uint8 {
	switch driver {
	case "smtp", "file":
		return Mail
	case "webhook":
		return URL
	}
	return 0
}

// OfAddress returns the kind that an address is of by how it is written: no mail
// address begins like a URL.
func OfAddress(address string) uint8 {
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") {
		return URL
	}
	return Mail
}
