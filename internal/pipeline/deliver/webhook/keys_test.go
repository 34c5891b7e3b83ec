package webhook

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"strings"
	"testing"
	"time"
)

func TestEachReceiverHasItsOwnSecret(t *testing.T) {
	one := secret.For("news", "https://a.example/")
	for _, other := range []Key{secret, secret.For("games", "https://a.example/"), secret.For("news", "https://b.example/"), Secret(strings.Repeat("x", 32)).For("news", "https://a.example/")} {
		if one.Text() == other.Text() {
			t.Errorf("two have the secret %s", one.Text())
		}
	}
	if again := secret.For("news", "https://a.example/"); again.Text() != one.Text() || len(one.(Secret)) != 32 {
		t.Errorf("%s became %s", one.Text(), again.Text())
	}
	read, err := ParseKeys(one.Text())
	if err != nil || len(read) != 1 || read[0].Text() != one.Text() {
		t.Errorf("%s cannot be read: %v", one.Text(), err)
	}
}

func TestRequestsAreSignedWithAllSecrets(t *testing.T) {
	older := Secret(strings.Repeat("o", 24))
	both := sign([]Key{secret, older}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	first := sign([]Key{secret}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	second := sign([]Key{older}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	if both != first+" "+second || !strings.HasPrefix(first, "v1,") || first == second {
		t.Errorf("%q is not %q and %q", both, first, second)
	}
	for _, other := range []string{
		sign([]Key{secret}, "news", "https://a.example/", "dlv-2", 1700000000, []byte("{}")),
		sign([]Key{secret}, "news", "https://a.example/", "dlv-1", 1700000001, []byte("{}")),
		sign([]Key{secret}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{ }")),
	} {
		if other == first {
			t.Errorf("another request has the signature %s", first)
		}
	}
}

func TestReceiverVerifiesWithThePublicKey(t *testing.T) {
	seed := bytes.Repeat([]byte{9}, ed25519.SeedSize)
	keys, err := ParseKeys("whsk_" + base64.StdEncoding.EncodeToString(seed) + "\n" + secret.Text())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ParseKeys("whsk_" + base64.StdEncoding.EncodeToString(ed25519.NewKeyFromSeed(seed)))
	if err != nil || pair[0].Text() != keys[0].Text() {
		t.Errorf("a seed with its public key behind it is another key: %v", err)
	}
	const receiver = "https://a.example/"
	both := strings.Fields(sign(keys, "news", receiver, "dlv-1", 1700000000, []byte("{}")))
	if len(both) != 2 || !strings.HasPrefix(both[1], "v1,") {
		t.Fatalf("signatures are %v, want one by each", both)
	}
	public := func(service, receiver string) ed25519.PublicKey {
		text, marked := strings.CutPrefix(keys[0].For(service, receiver).Text(), "whpk_")
		key, err := base64.StdEncoding.DecodeString(text)
		if !marked || err != nil || len(key) != ed25519.PublicKeySize {
			t.Fatalf("%q is no public key", text)
		}
		return key
	}
	text, marked := strings.CutPrefix(both[0], "v1a,")
	signature, err := base64.StdEncoding.DecodeString(text)
	signed := []byte("dlv-1.1700000000.{}")
	if !marked || err != nil || !ed25519.Verify(public("news", receiver), signed, signature) {
		t.Errorf("%q is no signature of %q", both[0], signed)
	}
	if ed25519.Verify(public("news", receiver), []byte("dlv-1.1700000000.{ }"), signature) {
		t.Error("another body is believed")
	}
	for _, other := range []ed25519.PublicKey{public("games", receiver), public("news", "https://b.example/"), ed25519.PublicKey(ed25519.NewKeyFromSeed(seed)[ed25519.SeedSize:])} {
		if ed25519.Verify(other, signed, signature) {
			t.Errorf("another receiver, with %x, believes it", other)
		}
	}
}

func TestInvalidSecretIsRejectedAndNotShown(t *testing.T) {
	good := secret.Text()
	for _, text := range []string{"", " \n", "password", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64", "whsk_", "whsk_c2hvcnQ=", "whsk", "whsk_" + strings.Repeat("AAAA", 21) + "AA==", "whpk_" + strings.Repeat("A", 43) + "=", strings.TrimPrefix(good, "whsec_"), good + " hunter2hunter2hunter2hunter2hunter2", strings.Repeat(good+"\n", 5)} {
		_, err := ParseKeys(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if all, err := ParseKeys("\n" + good + "\r\n\t" + good + "\n"); err != nil || len(all) != 2 {
		t.Errorf("two secrets are %d: %v", len(all), err)
	}
}

func TestReceiverCanAskForAPause(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 15, 0, 0, time.UTC)
	for field, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 120 ": 2 * time.Minute, "00001": time.Second, "604801": maxRetryAfter, "99999999999999999999": maxRetryAfter,
		"-1": 0, "+5": 0, "1.5": 0, "soon": 0, "1e3": 0, "0x10": 0,
		"Fri, 20 Nov 2026 08:20:00 GMT": 5 * time.Minute, "Friday, 20-Nov-26 08:20:00 GMT": 5 * time.Minute, "Fri Nov 20 08:20:00 2026": 5 * time.Minute,
		"Fri, 20 Nov 2026 08:00:00 GMT": 0, "Fri, 20 Nov 2099 08:00:00 GMT": maxRetryAfter, "Fri, 32 Nov 2026 08:20:00 GMT": 0,
	} {
		if got := retryAfter(field, now); got != want {
			t.Errorf("%q: %v, want %v", field, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"120", "Fri, 20 Nov 2026 08:20:00 GMT", "-1", "9223372036854775807"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		if got := retryAfter(field, time.Date(2026, 11, 20, 8, 15, 0, 0, time.UTC)); got < 0 || got > maxRetryAfter {
			t.Fatalf("%q asks for %v", field, got)
		}
	})
}
