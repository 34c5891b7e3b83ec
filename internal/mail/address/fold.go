package address

import (
	"slices"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare"
)

// Fold checks an address that is to be an alias, and returns the one form of all that a reader would take for the same: in lower case, in the
// normal form NFC, and with the domain in Unicode. The local part must not be quoted, because quotes allow two forms of every local part.
func Fold(s string) (string, error) {
	normal, err := Parse(s)
	if err != nil {
		return "", err
	}
	if normal[0] == '"' {
		return "", &fanfare.Error{Code: fanfare.Invalid, Message: "the part before the @ is in quotes", Hint: "use an address without quotes"}
	}
	return fold(normal), nil
}

// fold returns the folded form of a normal address. A domain that cannot be converted stays as it is.
func fold(normal string) string {
	at := strings.LastIndexByte(normal, '@')
	domain := normal[at+1:]
	if converted, err := idna.Lookup.ToUnicode(domain); err == nil {
		domain = converted
	}
	return norm.NFC.String(strings.ToLower(norm.NFC.String(normal[:at]))) + "@" + domain
}

// Domain returns the domain of a normal address in ASCII. A domain that cannot be converted stays as it is.
func Domain(normal string) string {
	domain := normal[strings.LastIndexByte(normal, '@')+1:]
	if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
		return ascii
	}
	return domain
}

// Forms returns the forms of a normal address under which a mailbox can have it, in the order in which they are looked up: the address itself, in
// lower case, and folded, also with the domain in ASCII. Each form is there once.
func Forms(normal string) []string {
	forms := []string{normal}
	add := func(form string) {
		if !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	add(strings.ToLower(normal))
	folded := fold(normal)
	add(folded)
	at := strings.LastIndexByte(folded, '@')
	if ascii, err := idna.Lookup.ToASCII(folded[at+1:]); err == nil {
		add(folded[:at+1] + ascii)
	}
	return forms
}
