package seal_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/seal"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(t *testing.T, secret byte) *seal.Key {
	t.Helper()
	k, err := seal.New(bytes.Repeat([]byte{secret}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestAPassIsGoodForItsPurposeUntilItEnds(t *testing.T) {
	k := key(t, 1)
	p, err := k.Seal('c', noon, []byte("ada@example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p, "ada") {
		t.Error("what is in a pass can be read")
	}
	if again, _ := k.Seal('c', noon, []byte("ada@example.org")); again == p {
		t.Error("two passes are alike")
	}
	for _, c := range []struct {
		name    string
		key     *seal.Key
		purpose seal.Purpose
		text    string
		at      time.Time
		want    error
	}{
		{"as it is", k, 'c', p, noon, nil},
		{"one second late", k, 'c', p, noon.Add(time.Second), seal.ErrExpired},
		{"another purpose", k, 'p', p, noon, seal.ErrForeign},
		{"another key", key(t, 2), 'c', p, noon, seal.ErrForeign},
		{"cut off", k, 'c', p[:len(p)-1], noon, seal.ErrForeign},
		{"longer", k, 'c', p + "A", noon, seal.ErrForeign},
		{"with a line end", k, 'c', p[:5] + "\n" + p[5:], noon, seal.ErrForeign},
		{"empty", k, 'c', "", noon, seal.ErrForeign},
		{"huge", k, 'c', strings.Repeat("A", 1<<20), noon, seal.ErrForeign},
	} {
		got, err := c.key.Open(c.purpose, c.text, c.at)
		if !errors.Is(err, c.want) || c.want == nil && string(got) != "ada@example.org" {
			t.Errorf("%s: %q, %v, want %v", c.name, got, err, c.want)
		}
	}
	for i := range p {
		other := []byte(p)
		if other[i] ^= 1; other[i] < ' ' {
			continue
		}
		if _, err := k.Open('c', string(other), noon); err == nil {
			t.Fatalf("letter %d can be another", i)
		}
	}
	if _, err := k.Seal('c', noon, make([]byte, seal.MaxPayloadBytes+1)); err == nil {
		t.Error("a pass carries anything")
	}
}
