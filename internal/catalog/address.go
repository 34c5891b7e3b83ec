package catalog

import (
	"slices"
	"strings"
)

// Kinds of address. The numbers are stored.
const (
	MailAddress uint8 = 1
	URLAddress  uint8 = 2
)

// AddressKindNames is how a kind is spelled, and how it enters the hash that chooses the
// partition. Kind 0 is no address at all: then the id takes its place in the hash.
var AddressKindNames = [...]string{MailAddress: "mail", URLAddress: "url"}

// ParseAddressKind returns the kind with a name, 0 if there is none.
func ParseAddressKind(name string) uint8 {
	return uint8(max(slices.Index(AddressKindNames[1:], name)+1, 0))
}

// AddressKindOf returns the kind of address that a driver sends to.
func AddressKindOf(driver string) uint8 {
	switch driver {
	case "smtp", "file":
		return MailAddress
	case "webhook":
		return URLAddress
	}
	return 0
}

// GuessAddressKind returns the kind that an address is of by how it is written: no mail
// address begins like a URL.
func GuessAddressKind(address string) uint8 {
	if strings.HasPrefix(address, "https://") || strings.HasPrefix(address, "http://") {
		return URLAddress
	}
	return MailAddress
}
