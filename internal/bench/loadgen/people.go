package loadgen

import (
	"bytes"
	"strconv"
)

// ParsePerson is the reverse of Person.Address.
func ParsePerson(address []byte) (Person, bool) {
	rest, ok := bytes.CutPrefix(address, []byte("person"))
	digits, _, found := bytes.Cut(rest, []byte{'@'})
	n, err := strconv.Atoi(string(digits))
	return Person(n), ok && found && err == nil
}

// NotifyFilter is the filter of NotifyBC's published test.
const NotifyFilter = "contains_ci(title,'vancouver') || contains_ci(title,'victoria')"

// A Person is a subscriber of an experiment, by number from 0.
type Person int

func (p Person) Address() string { return string(p.AppendAddress(nil)) }

func (p Person) AppendAddress(dst []byte) []byte {
	dst = append(dst, "person"...)
	dst = appendPadded(dst, uint64(p), 8)
	return append(dst, "@example.net"...)
}

// AppendLink appends the link of this person.
func (p Person) AppendLink(dst []byte, seed uint64) []byte {
	dst = append(dst, "https://alerts.example.org/read/"...)
	h := Mix(seed ^ uint64(p))
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[h>>shift&15])
	}
	return dst
}

func appendPadded(dst []byte, n uint64, width int) []byte {
	digits := strconv.AppendUint(nil, n, 10)
	for range width - len(digits) {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// AppendSubscription appends the line of one subscription in the form of the bulk
// import.
func AppendSubscription(dst []byte, p Person, seed uint64, filter string) []byte {
	dst = append(dst, `{"topic":"news","channel":"email","to":"`...)
	dst = p.AppendAddress(dst)
	dst = append(dst, `","filter":`...)
	dst = strconv.AppendQuote(dst, filter)
	dst = append(dst, `,"data":{"link":"`...)
	dst = p.AppendLink(dst, seed)
	return append(dst, "\"}}\n"...)
}

func AppendSymbol(dst []byte, symbol int) []byte {
	return appendPadded(append(dst, 'S'), uint64(symbol), 5)
}
