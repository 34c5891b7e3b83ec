package address

import (
	"net/mail"
	"strings"
	"testing"
	"unicode"
)

func TestAddresses(t *testing.T) {
	label := strings.Repeat("a", 63)
	tests := []struct{ address, normal string }{
		{"a@example.org", "a@example.org"},
		{"Ada.Lovelace+quakes@EXAMPLE.Org", "Ada.Lovelace+quakes@example.org"},
		{"!#$%&'*+-/=?^_`{|}~@example.org", "!#$%&'*+-/=?^_`{|}~@example.org"},
		{"a@localhost", "a@localhost"},
		{"a@LOCALHOST", "a@localhost"},
		{"a@1.example", "a@1.example"},
		{"a@x-y.3com.example", "a@x-y.3com.example"},
		{`"a b@c\""@example.org`, `"a b@c\""@example.org`},
		{"дмитрий@example.org", "дмитрий@example.org"},
		{"a@Bücher.example", "a@bücher.example"},
		{"a@xn--bcher-kva.example", "a@xn--bcher-kva.example"},
		{strings.Repeat("a", 64) + "@example.org", strings.Repeat("a", 64) + "@example.org"},
		{"a@" + label + "." + label + ".example", "a@" + label + "." + label + ".example"},

		{"", ""}, {"a", ""}, {"@", ""}, {"a@", ""}, {"@example.org", ""}, {"a@b", ""}, {"a@b.", ""}, {"a@.b", ""}, {"a@b..c", ""},
		{".a@example.org", ""}, {"a.@example.org", ""}, {"a..b@example.org", ""}, {"a b@example.org", ""}, {"a@b@example.org", ""},
		{"a@-b.example", ""}, {"a@b-.example", ""}, {"a@b_c.example", ""}, {"a@[127.0.0.1]", ""}, {"a@127.0.0.1", ""}, {"a@example.1", ""},
		{"<a@example.org>", ""}, {"Ada <a@example.org>", ""}, {"a@example.org\n", ""}, {"a@exa mple.org", ""}, {"a\x7f@example.org", ""},
		{`""@example.org`, ""}, {`"a@example.org`, ""}, {`"a"b@example.org`, ""}, {`"a\"@example.org`, ""},
		{"a\u200b@example.org", ""}, {"a\xff@example.org", ""}, {"a@\u200b.example", ""},
		{strings.Repeat("a", 65) + "@example.org", ""}, {"a@" + label + "a.example", ""},
		{"a@" + strings.Repeat(label+".", 4) + "example", ""},
	}
	for _, tt := range tests {
		normal, err := Parse(tt.address)
		if normal != tt.normal || (err == nil) != (tt.normal != "") {
			t.Errorf("%q: %q, %v; want %q", tt.address, normal, err, tt.normal)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"a@example.org", `"a b"@example.org`, "дмитрий@почта.example", "a@[::1]", "a..b@c.d", "a@b-.c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		normal, err := Parse(s)
		if err != nil {
			return
		}
		if len(normal) > maxAddressBytes || strings.ContainsFunc(normal, unicode.IsControl) || strings.ContainsAny(normal[strings.LastIndexByte(normal, '@'):], " <>,;:\"") {
			t.Fatalf("accepted %q", normal)
		}
		if again, err := Parse(normal); err != nil || again != normal {
			t.Fatalf("%q becomes %q, %v", normal, again, err)
		}
		path, _, err := Route(normal)
		if err != nil {
			t.Fatalf("no route to %q: %v", normal, err)
		}
		if _, err := mail.ParseAddress("<" + path + ">"); err != nil {
			t.Fatalf("net/mail refuses %q: %v", path, err)
		}
	})
}

func BenchmarkParseAddress(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("person000001@example.net"); err != nil {
			b.Fatal(err)
		}
	}
}
