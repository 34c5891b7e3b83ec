package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func TestEveryPersonHasAnAddressAndALinkOfTheSameLength(t *testing.T) {
	addresses, links := map[string]bool{}, map[string]bool{}
	for p := range person(10_000) {
		address, link := p.address(), string(p.appendLink(nil, 7))
		if len(address) != len(person(0).address()) || len(link) != len(person(0).appendLink(nil, 7)) {
			t.Fatalf("%s %s: another length", address, link)
		}
		if addresses[address] || links[link] {
			t.Fatalf("%s %s: twice", address, link)
		}
		addresses[address], links[link] = true, true
		if back, ok := parsePerson([]byte(address)); !ok || back != p {
			t.Fatalf("%s is read as %d", address, back)
		}
	}
	for _, strange := range []string{"", "person", "person12", "personx@example.net", "x@example.net"} {
		if _, ok := parsePerson([]byte(strange)); ok {
			t.Errorf("%q is a person", strange)
		}
	}
}

func TestLinesAreSubscriptionsAsTheImportTakesThem(t *testing.T) {
	for _, line := range [][]byte{appendSubscription(nil, 3, 1, notifyFilter), mixedLine(nil, 3, 0, 1), mixedLine(nil, 3, 2, 1)} {
		var got struct {
			Topic, Channel, To, Filter string
			Data                       struct{ Link string }
		}
		if !bytes.HasSuffix(line, []byte("\n")) {
			t.Errorf("no line end: %q", line)
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got.Topic != "news" || got.Channel != "email" || got.To != "person00000003@example.net" || got.Filter == "" || !strings.HasPrefix(got.Data.Link, "https://") {
			t.Errorf("got %+v", got)
		}
	}
	if bytes.Equal(mixedLine(nil, 3, 1, 1), mixedLine(nil, 3, 2, 1)) {
		t.Error("two subscriptions of one person are equal, and would be one")
	}
}

func TestTheSameSeedGivesTheSamePeople(t *testing.T) {
	write := func(name string, seed uint64) []byte {
		path := filepath.Join(t.TempDir(), name)
		size, err := writeLines(path, 100, func(dst []byte, i int) []byte { return mixedLine(dst, person(i), 0, seed) })
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil || int64(len(b)) != size {
			t.Fatalf("%d bytes, %d said, %v", len(b), size, err)
		}
		return b
	}
	if !bytes.Equal(write("a", 1), write("b", 1)) {
		t.Error("two files of one seed differ")
	}
	if bytes.Equal(write("a", 1), write("b", 2)) {
		t.Error("two seeds give the same")
	}
}

func TestALineReaderGivesEachLineOnce(t *testing.T) {
	i := 0
	b, err := io.ReadAll(&lineReader{next: func(dst []byte) []byte {
		if i < 5000 {
			dst = appendSubscription(dst, person(i), 1, notifyFilter)
			i++
		}
		return dst
	}})
	if err != nil || bytes.Count(b, []byte("\n")) != 5000 || !bytes.Contains(b, []byte("person00004999@")) {
		t.Errorf("%d lines, %v", bytes.Count(b, []byte("\n")), err)
	}
}

func TestVariantsAreDifferentAndAsLong(t *testing.T) {
	mail := []byte("To: " + person(0).address() + "\r\n\r\n" + string(person(0).appendLink(nil, 1)) + "\r\n")
	all, err := variants(mail, 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, v := range all {
		if len(v) != len(mail) || seen[string(v)] {
			t.Fatalf("%q", v)
		}
		seen[string(v)] = true
	}
	if _, err := variants([]byte("Subject: another\r\n\r\n"), 1, 1); err == nil {
		t.Error("a mail without the person's address was taken")
	}
}

func TestTheAccountFindsWhoIsMissingAndWhoHasTooMany(t *testing.T) {
	dir := t.TempDir()
	input, came := filepath.Join(dir, "input"), filepath.Join(dir, "came")
	if _, err := writeLines(input, 5, func(dst []byte, i int) []byte { return mixedLine(dst, person(i), 0, 1) }); err != nil {
		t.Fatal(err)
	}
	record := func(people ...person) {
		var b strings.Builder
		for _, p := range people {
			b.WriteString("1\tevt-1\t" + p.address() + "\t<1@example.net>\n")
		}
		if err := os.WriteFile(came, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := []fanfare.Delivery{{Address: person(4).address()}}
	for _, c := range []struct {
		name        string
		people      []person
		lost, twice int64
	}{
		{"all", []person{0, 1, 2, 3}, 0, 0},
		{"one is missing", []person{0, 1, 3}, 1, 0},
		{"one came twice", []person{0, 1, 2, 3, 3}, 0, 1},
		{"one failed and came", []person{0, 1, 2, 3, 4}, 0, 1},
	} {
		record(c.people...)
		lost, twice, err := account(input, came, failed, 5)
		if err != nil || lost != c.lost || twice != c.twice {
			t.Errorf("%s: %d lost, %d too many, %v", c.name, lost, twice, err)
		}
	}
	record(77)
	if _, _, err := account(input, came, failed, 5); err == nil {
		t.Error("a stranger was taken")
	}
}

func TestAnswersAreReadToTheirEnd(t *testing.T) {
	read := func(text string) error { return readAnswer(bufio.NewReader(strings.NewReader(text))) }
	if err := read("HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"); err != nil {
		t.Error(err)
	}
	for name, text := range map[string]string{
		"refused":     "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad",
		"short":       "HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n{}",
		"closing":     "HTTP/1.1 202 Accepted\r\nConnection: close\r\n\r\n{}",
		"not an HTTP": "220 mail.example.org\r\n",
	} {
		if read(text) == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestTheLastWordsOfACounterAreRead(t *testing.T) {
	said := lastWords(strings.NewReader(strings.Repeat("sess=    1 quit=    0 mesg=    7\r", 1000) + "sess=   50 quit=   50 mesg= 1234\r"))
	all := mailCounter.FindAllStringSubmatch(said, -1)
	if len(all) == 0 || all[len(all)-1][1] != "1234" {
		t.Errorf("got %q", said)
	}
}
