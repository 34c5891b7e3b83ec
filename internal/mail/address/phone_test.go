package address

import (
	"testing"

	"fanfare.dev/fanfare"
)

func TestPhoneNumberIsNormalized(t *testing.T) {
	for _, c := range []struct{ written, normal string }{
		{"+447700900123", "+447700900123"},
		{"07700 900 123", "+447700900123"},
		{"7700900123", "+447700900123"},
		{"447700900123", "+447700900123"},
		{"+44 (0) 7700 900-123", "+447700900123"},
		{"0044 7700.900123", "+447700900123"},
		{"020 7946 0123", "+442079460123"},
		{"+1 (250) 555-0123", "+12505550123"},
		{"001 250 555 0123", "+12505550123"},
		{"12505550123", "+12505550123"},
		{"+49\u00a030\u00a0123456", "+4930123456"},
	} {
		if normal, err := ParsePhone(c.written); err != nil || normal != c.normal {
			t.Errorf("%q: got %q, %v", c.written, normal, err)
		}
		if again, err := ParsePhone(c.normal); err != nil || again != c.normal {
			t.Errorf("%q: the normal form is read as %q, %v", c.normal, again, err)
		}
	}
}

func TestWrongPhoneNumberIsRefused(t *testing.T) {
	for _, s := range []string{"", "+", "12", "+44", "+44 7700 900123 4567 89", "077OO 900123", "ada@example.org", "+44+7700900123", "447700+900123",
		"+0447700900123", "07700 900123 ext 4", "+44 7700\r\n900123", "https://example.org/"} {
		if normal, err := ParsePhone(s); fanfare.CodeOf(err) != fanfare.Invalid {
			t.Errorf("%q: got %q, %v", s, normal, err)
		}
	}
}

func FuzzPhone(f *testing.F) {
	for _, s := range []string{"+447700900123", "(0) 1", "00", "+44 (0) 7"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		normal, err := ParsePhone(s)
		if err != nil {
			return
		}
		if len(normal) < 9 || len(normal) > 16 || normal[0] != '+' {
			t.Errorf("%q became %q", s, normal)
		}
		if again, err := ParsePhone(normal); err != nil || again != normal {
			t.Errorf("%q became %q, which becomes %q, %v", s, normal, again, err)
		}
	})
}
