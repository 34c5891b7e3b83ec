package notify

import (
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/mail/address"
)

func TestPhoneNumberIsShownAsItWasSent(t *testing.T) {
	for _, sent := range []string{"07900 900 123", "+447900900123", "+44 (0) 7900 900-123", "00447900900123", "7900900123", "+1 (250) 555.0123", "0044 0 7900 900123"} {
		normal, err := address.ParsePhone(sent)
		if err != nil {
			t.Fatal(err)
		}
		spelling := spellingOf(sent, normal)
		if strings.ContainsAny(spelling, "123456789") && !strings.HasPrefix(spelling, "+44") && !strings.HasPrefix(spelling, "0044") {
			t.Errorf("the spelling %q contains the number", spelling)
		}
		if got := spelled(spelling, normal); got != sent {
			t.Errorf("%q is shown as %q (%q)", sent, got, spelling)
		}
		if got := spelled(spelling, ""); got != "" {
			t.Errorf("an erased number is shown as %q", got)
		}
	}
}

func TestPhoneNumbersAreCheckedAsNotifyDoes(t *testing.T) {
	for number, want := range map[string]string{
		"07900 900 123": "", "+44 7900 900123": "", "7900900123": "", "004407900900123": "", "+1 250 555 0123": "", "1 250 555 0123": "", "+353 1 234 5678": "",
		"": "Not enough digits", "0790090012": "Not enough digits", "020 7946 0123": "Not a UK mobile number", "+999 1234567": "Not a valid country prefix", "07900x": "Must not contain letters or symbols",
	} {
		if got := phoneProblem(number); got != want {
			t.Errorf("%q: got %q, want %q", number, got, want)
		}
	}
}

func TestEmailAddressesAreCheckedAsNotifyDoes(t *testing.T) {
	for address, want := range map[string]bool{
		"a@example.org": true, "a.b+c@sub.example.co.uk": true, " a@example.org ": true, "o'b|`{}~@example.org": true, "a@bücher.example": true,
		"": false, "a": false, "a@b": false, "a@localhost": false, `"a b"@example.org`: false, "a..b@example.org": false, ".a@example.org": false, "a@example.c0m": false, "a@example.1": false, "a@exa mple.org": false, "é@example.org": false, "a@example.org\r\nBcc: b@example.org": false,
	} {
		if got := validEmail(address); got != want {
			t.Errorf("%q: got %v, want %v", address, got, want)
		}
	}
}
