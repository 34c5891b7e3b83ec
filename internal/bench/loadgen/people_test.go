package loadgen

import (
	"bytes"
	"io"
	"testing"
)

func TestEveryPersonHasAnAddressAndALinkOfTheSameLength(t *testing.T) {
	addresses, links := map[string]bool{}, map[string]bool{}
	for p := range Person(10_000) {
		address, link := p.Address(), string(p.AppendLink(nil, 7))
		if len(address) != len(Person(0).Address()) || len(link) != len(Person(0).AppendLink(nil, 7)) {
			t.Fatalf("%s %s: another length", address, link)
		}
		if addresses[address] || links[link] {
			t.Fatalf("%s %s: twice", address, link)
		}
		addresses[address], links[link] = true, true
		if back, ok := ParsePerson([]byte(address)); !ok || back != p {
			t.Fatalf("%s is read as %d", address, back)
		}
	}
	for _, strange := range []string{"", "person", "person12", "personx@example.net", "x@example.net"} {
		if _, ok := ParsePerson([]byte(strange)); ok {
			t.Errorf("%q is a person", strange)
		}
	}
}

func TestALineReaderGivesEachLineOnce(t *testing.T) {
	i := 0
	b, err := io.ReadAll(&LineReader{Next: func(dst []byte) []byte {
		if i < 5000 {
			dst = AppendSubscription(dst, Person(i), 1, NotifyFilter)
			i++
		}
		return dst
	}})
	if err != nil || bytes.Count(b, []byte("\n")) != 5000 || !bytes.Contains(b, []byte("person00004999@")) {
		t.Errorf("%d lines, %v", bytes.Count(b, []byte("\n")), err)
	}
}
