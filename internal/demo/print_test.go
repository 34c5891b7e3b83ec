package demo

import (
	"slices"
	"testing"
)

func TestThousandsAreApart(t *testing.T) {
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 250_404: "250,404", 1_234_567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestLinesBreakBetweenWords(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{""}},
		{"fits  as is", []string{"fits  as is"}},
		{"this is longer than it", []string{"this is", "longer than", "it"}},
		{"see https://example.org/long now", []string{"see", "https://example.org/long", "now"}},
		{"über größere Bögen hinaus", []string{"über größere", "Bögen hinaus"}},
	}
	for _, test := range tests {
		if got := wrap(test.text, 12); !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}

func TestAMailIsDecoded(t *testing.T) {
	const head = "From: =?utf-8?q?J=C3=BCrgen?= <a@example.org>\r\nTo: b@example.org\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\nDate: Fri, 20 Nov 2026 08:22:10 +0000\r\n"
	tests := []struct{ name, message, want string }{
		{"plain", "Content-Type: text/plain\r\n\r\nHello\r\nworld\r\n", "Hello\nworld"},
		{"quoted", "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nGr=C3=BC=\r\n=C3=9Fe\r\n", "Grüße"},
		{"parts", "Content-Type: multipart/alternative; boundary=x\r\n\r\n--x\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3Db\r\n--x\r\nContent-Type: text/html\r\n\r\n<p>no\r\n--x--\r\n", "a=b"},
	}
	for _, test := range tests {
		l, err := open([]byte(head + test.message))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if l.text != test.want || l.header[0][1] != "Jürgen <a@example.org>" || l.header[2][1] != "Grüße" {
			t.Errorf("%s: %+v", test.name, l)
		}
	}
	for _, bad := range []string{"", "no mail", head + "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x--\r\n"} {
		if l, err := open([]byte(bad)); err == nil {
			t.Errorf("%q: %+v", bad, l)
		}
	}
}
