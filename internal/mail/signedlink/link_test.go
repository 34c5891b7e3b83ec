package signedlink

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare"
)

func newSigner(t testing.TB, keys ...string) *Signer {
	t.Helper()
	var all [][]byte
	for _, k := range keys {
		all = append(all, []byte(k))
	}
	s, err := NewSigner("https://example.org/", all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const oldKey, newKey = "an old key of 24 symbols", "a new key of 24 symbols."

var testDelivery = fanfare.DeliveryRef{Day: 20777, Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(1, 1), 3), Position: 17}

func aLink() Link {
	return Link{Service: "earthquakes", Subscription: fanfare.NewRowID(7, 0x4e), Delivery: testDelivery}
}

func TestLinkRoundTrips(t *testing.T) {
	s := newSigner(t, newKey)
	url := string(s.AppendURL([]byte("see "), aLink()))
	token, ok := strings.CutPrefix(url, "see https://example.org/u/")
	if !ok || strings.ContainsAny(token, "+/=") {
		t.Fatal(url)
	}
	got, err := s.Verify(token)
	if err != nil || got != aLink() {
		t.Errorf("%+v, %v", got, err)
	}
	if again := string(s.Clone().AppendURL(nil, aLink())); again != url[4:] {
		t.Errorf("a clone signs otherwise: %s", again)
	}
}

func TestChangedLinkIsRefused(t *testing.T) {
	s := newSigner(t, newKey)
	token := strings.TrimPrefix(string(s.AppendURL(nil, aLink())), "https://example.org/u/")
	for i := range len(token) {
		for _, c := range []byte{'A', 'B', '-', '.'} {
			changed := token[:i] + string(c) + token[i+1:]
			if changed == token {
				continue
			}
			if _, err := s.Verify(changed); fanfare.CodeOf(err) != fanfare.Forbidden {
				t.Fatalf("accepted with %c at %d", c, i)
			}
		}
	}
	for _, bad := range []string{"", "A", token + "A", token[:len(token)-1], token + "\n", strings.Repeat("A", 1000)} {
		if _, err := s.Verify(bad); fanfare.CodeOf(err) != fanfare.Forbidden {
			t.Errorf("accepted %q", bad)
		}
	}
}

func TestOldKeysAreAcceptedDuringRotation(t *testing.T) {
	token := strings.TrimPrefix(string(newSigner(t, oldKey).AppendURL(nil, aLink())), "https://example.org/u/")
	if _, err := newSigner(t, newKey, oldKey).Verify(token); err != nil {
		t.Error(err)
	}
	if _, err := newSigner(t, newKey).Verify(token); err == nil {
		t.Error("accepted without the old key")
	}
}

func TestSignerNeedsAURLAndAKey(t *testing.T) {
	key := []byte(newKey)
	for _, base := range []string{"", "example.org", "ftp://example.org", "https://", "https://example.org/?a=1", "https://example.org/#a",
		"https://u:p@example.org", "https://example.org/\r\nBcc: x"} {
		if _, err := NewSigner(base, key); err == nil {
			t.Errorf("accepted %q", base)
		}
	}
	if _, err := NewSigner("https://example.org"); err == nil {
		t.Error("accepted no key")
	}
	if _, err := NewSigner("https://example.org", []byte("short")); err == nil {
		t.Error("accepted a short key")
	}
}

func FuzzVerify(f *testing.F) {
	s := newSigner(f, newKey)
	f.Add(strings.TrimPrefix(string(s.AppendURL(nil, aLink())), "https://example.org/u/"))
	f.Fuzz(func(t *testing.T, token string) {
		l, err := s.Verify(token)
		if err == nil && string(s.AppendURL(nil, l)) != "https://example.org/u/"+token {
			t.Fatalf("%q is a second spelling of %+v", token, l)
		}
	})
}

func BenchmarkAppendURL(b *testing.B) {
	s, l := newSigner(b, newKey), aLink()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = s.AppendURL(dst[:0], l)
	}
}

func TestPreferencesLinkHasOnlyItsPurpose(t *testing.T) {
	s, err := NewSigner("https://news.example.org/at", []byte("a key of enough bytes"))
	if err != nil {
		t.Fatal(err)
	}
	l := Link{Service: "news", Subscription: 77, Delivery: fanfare.DeliveryRef{Day: 20_500, Manifest: 9, Position: 3}}
	token, ours := strings.CutPrefix(string(s.AppendPreferences(nil, l)), "https://news.example.org/at/p/")
	if !ours {
		t.Fatal("the link leads elsewhere")
	}
	got, err := s.VerifyPreferences(token)
	if want := (Link{Service: "news", Subscription: 77, Delivery: fanfare.DeliveryRef{Day: 20_500}}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Verify(token); err == nil {
		t.Error("it unsubscribes")
	}
	other := strings.TrimPrefix(string(s.AppendURL(nil, l)), "https://news.example.org/at/u/")
	if _, err := s.VerifyPreferences(other); err == nil {
		t.Error("a link to unsubscribe shows preferences")
	}
	for _, broken := range []string{"", token[1:], token[:len(token)-1], token + "A", strings.ToLower(token), token[:9] + "\n" + token[9:]} {
		if _, err := s.VerifyPreferences(broken); err == nil {
			t.Errorf("%q is taken", broken)
		}
	}
}
