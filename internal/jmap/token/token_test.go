package token

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/mail/linktoken"
)

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func newKey(t testing.TB, secret byte) *Key {
	t.Helper()
	seals, err := linktoken.New(bytes.Repeat([]byte{secret}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return New(seals)
}

func TestTokensContainTheirClaimsUntilTheyExpire(t *testing.T) {
	k := newKey(t, 1)
	want := Claims{Account: 1<<32 - 1, Service: "press", Origins: []string{"https://a.example.org", "http://localhost:8080"}, Until: noon.Add(time.Hour)}
	text, err := k.Mint(want, noon)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Duration{0, time.Hour} {
		got, err := k.Open(text, noon.Add(at))
		if err != nil || got.Account != want.Account || got.Service != want.Service || !slices.Equal(got.Origins, want.Origins) || !got.Until.Equal(want.Until) {
			t.Errorf("after %v: got %+v, %v", at, got, err)
		}
	}
	got, err := k.Open(text, noon.Add(time.Hour+time.Second))
	if fanfare.CodeOf(err) != fanfare.Unauthenticated || !got.Allows("https://a.example.org") {
		t.Errorf("expired: %+v, %v", got, err)
	}
	if !want.Allows("") || want.Allows("https://evil.example.org") || want.Allows("https://a.example.org.evil.org") || want.Allows("null") {
		t.Error("an origin is allowed or refused wrongly")
	}
}

func TestForgedTokensAreRefused(t *testing.T) {
	text, err := newKey(t, 1).Mint(Claims{Account: 7, Service: "press", Until: noon.Add(time.Hour)}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newKey(t, 2).Open(text, noon); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("another key: %v", err)
	}
	for i := range len(text) {
		forged := []byte(text)
		forged[i] ^= 1
		if _, err := newKey(t, 1).Open(string(forged), noon); fanfare.CodeOf(err) != fanfare.Unauthenticated {
			t.Fatalf("changed at %d: %v", i, err)
		}
	}
	seals, _ := linktoken.New(bytes.Repeat([]byte{1}, 32))
	other, _ := seals.Seal(1, noon.Add(time.Hour), []byte(`{"a":7}`))
	if _, err := newKey(t, 1).Open(other, noon); fanfare.CodeOf(err) != fanfare.Unauthenticated {
		t.Errorf("a token of a link: %v", err)
	}
}

func TestWrongClaimsAreRefused(t *testing.T) {
	k := newKey(t, 1)
	for name, c := range map[string]Claims{
		"too short": {Until: noon.Add(time.Second)}, "too long": {Until: noon.Add(25 * time.Hour)}, "past": {Until: noon.Add(-time.Hour)},
		"star": {Until: noon.Add(time.Hour), Origins: []string{"*"}}, "path": {Until: noon.Add(time.Hour), Origins: []string{"https://a.org/"}},
		"scheme": {Until: noon.Add(time.Hour), Origins: []string{"ftp://a.org"}}, "user": {Until: noon.Add(time.Hour), Origins: []string{"https://u@a.org"}},
		"null": {Until: noon.Add(time.Hour), Origins: []string{"null"}}, "many": {Until: noon.Add(time.Hour), Origins: slices.Repeat([]string{"https://a.org"}, 11)},
	} {
		if text, err := k.Mint(c, noon); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}
