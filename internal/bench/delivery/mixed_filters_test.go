package delivery

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/loadgen"
)

func TestLinesAreSubscriptionsAsTheImportTakesThem(t *testing.T) {
	for _, line := range [][]byte{loadgen.AppendSubscription(nil, 3, 1, loadgen.NotifyFilter), mixedLine(nil, 3, 0, 1), mixedLine(nil, 3, 2, 1)} {
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
		size, err := loadgen.WriteLines(path, 100, func(dst []byte, i int) []byte { return mixedLine(dst, loadgen.Person(i), 0, seed) })
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

func TestTheAccountFindsMissingAndDuplicateMails(t *testing.T) {
	dir := t.TempDir()
	input, came := filepath.Join(dir, "input"), filepath.Join(dir, "came")
	if _, err := loadgen.WriteLines(input, 5, func(dst []byte, i int) []byte { return mixedLine(dst, loadgen.Person(i), 0, 1) }); err != nil {
		t.Fatal(err)
	}
	record := func(people ...loadgen.Person) {
		var b strings.Builder
		for _, p := range people {
			b.WriteString("1\tevt-1\t" + p.Address() + "\t<1@example.net>\n")
		}
		if err := os.WriteFile(came, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	failed := []fanfare.Delivery{{Address: loadgen.Person(4).Address()}}
	for _, c := range []struct {
		name        string
		people      []loadgen.Person
		lost, twice int64
	}{
		{"all", []loadgen.Person{0, 1, 2, 3}, 0, 0},
		{"one is missing", []loadgen.Person{0, 1, 3}, 1, 0},
		{"one came twice", []loadgen.Person{0, 1, 2, 3, 3}, 0, 1},
		{"one failed and came", []loadgen.Person{0, 1, 2, 3, 4}, 0, 1},
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
