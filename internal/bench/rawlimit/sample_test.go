package rawlimit

import (
	"testing"

	"fanfare.dev/fanfare/internal/bench/loadgen"
)

func TestVariantsAreDifferentAndAsLong(t *testing.T) {
	mail := []byte("To: " + loadgen.Person(0).Address() + "\r\n\r\n" + string(loadgen.Person(0).AppendLink(nil, 1)) + "\r\n")
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
