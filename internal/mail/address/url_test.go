package address

import (
	"net/url"
	"strings"
	"testing"
)

func TestURLHasOneNormalForm(t *testing.T) {
	for written, want := range map[string]string{
		"https://example.org":                                     "https://example.org/",
		"HTTPS://Example.ORG:443/A?b=C":                           "https://example.org/A?b=C",
		"http://example.org:80":                                   "http://example.org/",
		"http://example.org:0443/":                                "http://example.org:443/",
		"https://example.org:8443?x":                              "https://example.org:8443/?x",
		"https://Bücher.example/é?q=é":                            "https://xn--bcher-kva.example/%C3%A9?q=%C3%A9",
		"https://[2001:DB8:0::1]:443/":                            "https://[2001:db8::1]/",
		"https://127.0.0.1:8080/hook":                             "https://127.0.0.1:8080/hook",
		"https://example.org/a%2fb?c={d}":                         "https://example.org/a%2fb?c=%7Bd%7D",
		"https://example.org/a?":                                  "https://example.org/a?",
		"https://my_host.internal/":                               "https://my_host.internal/",
		"":                                                        "",
		"example.org":                                             "",
		"ftp://example.org/":                                      "",
		"https:///path":                                           "",
		"https://user@example.org/":                               "",
		"https://user:word@example.org/":                          "",
		"https://example.org/#part":                               "",
		"https://example.org:/":                                   "",
		"https://example.org:0/":                                  "",
		"https://example.org:65536/":                              "",
		"https://example..org/":                                   "",
		"https://2130706433/":                                     "",
		"https://0x7f.1/":                                         "",
		"https://0x7f000001/":                                     "",
		"https://127.1/":                                          "",
		"https://[fe80::1%25eth0]/":                               "",
		"https://example.org/a b":                                 "",
		"https://example.org\\@evil.example/":                     "",
		"https://example.org/\r\nHost: x":                         "",
		"https://example.org/" + string([]byte{0xff}):             "",
		"https://example.org/" + strings.Repeat("x", MaxURLBytes): "",
	} {
		got, err := ParseURL(written)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.80q: got %q, %v; want %q", written, got, err, want)
		}
	}
}

func TestDestinationIsHostAndPort(t *testing.T) {
	for written, want := range map[string]string{
		"https://example.org/a?b=c:d": "example.org:443", "http://example.org/": "example.org:80",
		"https://example.org:8443/": "example.org:8443", "https://[2001:db8::1]/": "[2001:db8::1]:443", "http://[::1]:8080/x": "[::1]:8080",
	} {
		if got := HostPort(written); got != want {
			t.Errorf("%s: got %s, want %s", written, got, want)
		}
	}
}

// FuzzURL checks that the normal form of a normal form is the same, and that a request goes to
// the host in it.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{"https://Example.org:443/a?b#c", "http://[::1]:80/%41", "https://ü.example/ü?ü", "https://a@b/", "https://a\\b/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		normal, err := ParseURL(written)
		if err != nil {
			return
		}
		if again, err := ParseURL(normal); err != nil || again != normal {
			t.Fatalf("%q became %q, and that %q, %v", written, normal, again, err)
		}
		u, err := url.Parse(normal)
		if err != nil || u.User != nil || u.Fragment != "" || len(normal) > MaxURLBytes || strings.ContainsFunc(normal, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Fatalf("%q became %q (%v)", written, normal, err)
		}
		if !strings.HasPrefix(HostPort(normal), strings.TrimSuffix(u.Host, ":"+u.Port())) {
			t.Fatalf("%q goes to %q", normal, HostPort(normal))
		}
	})
}
