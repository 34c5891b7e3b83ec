package webhook

import (
	"strings"
	"testing"
	"time"
)

func TestSecretsOfReceiversAreTheirOwn(t *testing.T) {
	one := secret.For("news", "https://a.example/")
	for _, other := range []Secret{secret, secret.For("games", "https://a.example/"), secret.For("news", "https://b.example/"), Secret(strings.Repeat("x", 32)).For("news", "https://a.example/")} {
		if one.Text() == other.Text() {
			t.Errorf("two have the secret %s", one.Text())
		}
	}
	if again := secret.For("news", "https://a.example/"); again.Text() != one.Text() || len(one) != 32 {
		t.Errorf("%s became %s", one.Text(), again.Text())
	}
	read, err := ParseSecrets(one.Text())
	if err != nil || len(read) != 1 || string(read[0]) != string(one) {
		t.Errorf("%s cannot be read: %v", one.Text(), err)
	}
}

func TestRequestsAreSignedWithAllSecrets(t *testing.T) {
	older := Secret(strings.Repeat("o", 24))
	both := sign([]Secret{secret, older}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	first := sign([]Secret{secret}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	second := sign([]Secret{older}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{}"))
	if both != first+" "+second || !strings.HasPrefix(first, "v1,") || first == second {
		t.Errorf("%q is not %q and %q", both, first, second)
	}
	for _, other := range []string{
		sign([]Secret{secret}, "news", "https://a.example/", "dlv-2", 1700000000, []byte("{}")),
		sign([]Secret{secret}, "news", "https://a.example/", "dlv-1", 1700000001, []byte("{}")),
		sign([]Secret{secret}, "news", "https://a.example/", "dlv-1", 1700000000, []byte("{ }")),
	} {
		if other == first {
			t.Errorf("another request has the signature %s", first)
		}
	}
}

func TestWhatIsNoSecretIsRefusedAndNotShown(t *testing.T) {
	good := secret.Text()
	for _, text := range []string{"", " \n", "password", "whsec_", "whsec_c2hvcnQ=", "whsec_not base64", strings.TrimPrefix(good, "whsec_"), good + " hunter2hunter2hunter2hunter2hunter2", strings.Repeat(good+"\n", 5)} {
		_, err := ParseSecrets(text)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if all, err := ParseSecrets("\n" + good + "\r\n\t" + good + "\n"); err != nil || len(all) != 2 {
		t.Errorf("two secrets are %d: %v", len(all), err)
	}
}

func TestAReceiverMayAskToBeLeftAlone(t *testing.T) {
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
