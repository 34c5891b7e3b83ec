package linktoken_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/mail/linktoken"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(t *testing.T, secret byte) *linktoken.Key {
	t.Helper()
	k, err := linktoken.New(bytes.Repeat([]byte{secret}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestTokenIsValidForItsPurposeUntilItExpires(t *testing.T) {
	k := key(t, 1)
	p, err := k.Seal('c', noon, []byte("ada@example.org"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p, "ada") {
		t.Error("the content of a token can be read")
	}
	if again, _ := k.Seal('c', noon, []byte("ada@example.org")); again == p {
		t.Error("two passes are alike")
	}
	for _, c := range []struct {
		name    string
		key     *linktoken.Key
		purpose linktoken.Purpose
		text    string
		at      time.Time
		want    error
	}{
		{"as it is", k, 'c', p, noon, nil},
		{"one second late", k, 'c', p, noon.Add(time.Second), linktoken.ErrExpired},
		{"another purpose", k, 'p', p, noon, linktoken.ErrForeign},
		{"another key", key(t, 2), 'c', p, noon, linktoken.ErrForeign},
		{"cut off", k, 'c', p[:len(p)-1], noon, linktoken.ErrForeign},
		{"longer", k, 'c', p + "A", noon, linktoken.ErrForeign},
		{"with a line end", k, 'c', p[:5] + "\n" + p[5:], noon, linktoken.ErrForeign},
		{"empty", k, 'c', "", noon, linktoken.ErrForeign},
		{"huge", k, 'c', strings.Repeat("A", 1<<20), noon, linktoken.ErrForeign},
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
			t.Fatalf("Open accepts a token with character %d changed", i)
		}
	}
	if _, err := k.Seal('c', noon, make([]byte, linktoken.MaxPayloadBytes+1)); err == nil {
		t.Error("a pass carries anything")
	}
}
