package smtp

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func TestRepliesAreOneCleanLine(t *testing.T) {
	long := strings.Repeat("é", 400)
	for _, c := range []struct {
		wire string
		code int // 0: refused
		text string
	}{
		{"250 2.0.0 Ok: queued as 4F\r\n", 250, "2.0.0 Ok: queued as 4F"},
		{"250\r\n", 250, ""},
		{"250 \n", 250, ""},
		{"250-one\r\n250-\r\n250 three\r\n", 250, "one three"},
		{"550 tab\there \x00 \x7f \xff\r\n", 550, "tab here     \uFFFD"},
		{"550 a\u2028b\u0085c\r\n", 550, "a b c"},
		{"550 " + long + "\r\n", 550, strings.Repeat("é", 256)},
		{"550-one\r\n551 two\r\n", 0, ""},
		{"25 short\r\n", 0, ""},
		{"999 what\r\n", 0, ""},
		{"100 continue\r\n", 0, ""},
		{"2500 what\r\n", 0, ""},
		{"\r\n", 0, ""},
		{"250 cut", 0, ""},
		{"250-cut\r\n", 0, ""},
		{strings.Repeat("250-x\r\n", 63) + "250 x\r\n", 250, strings.TrimSpace(strings.Repeat("x ", 64))},
		{strings.Repeat("250-x\r\n", 64) + "250 x\r\n", 0, ""},
		{"250 " + strings.Repeat("x", maxReplyLine) + "\r\n", 0, ""},
	} {
		code, text, err := readReply(bufio.NewReaderSize(strings.NewReader(c.wire), maxReplyLine), nil, nil)
		if code != c.code || (err == nil) != (c.code != 0) || err == nil && string(text) != c.text {
			t.Errorf("%.80q: %d %q %v", c.wire, code, text, err)
		}
	}
}

func FuzzReadReply(f *testing.F) {
	for _, seed := range []string{"250 Ok\r\n", "250-a\r\n250 b\r\n", "550 \xff\r\n", "354\n", "2", "250-\r\n\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		in := bufio.NewReaderSize(bytes.NewReader(wire), maxReplyLine)
		var buf []byte
		for {
			code, text, err := readReply(in, buf, nil)
			if err != nil {
				return
			}
			buf = text
			if code < 200 || code > 599 || len(text) > maxReplyText || !utf8.Valid(text) || bytes.ContainsAny(text, "\r\n\x00") {
				t.Fatalf("%d %q", code, text)
			}
		}
	})
}

func TestOnlyDotsAtTheStartOfLinesAreDoubled(t *testing.T) {
	for body, want := range map[string]string{
		"":                       ".\r\n",
		"a\r\n":                  "a\r\n.\r\n",
		"a":                      "a\r\n.\r\n",
		"a\n":                    "a\n\r\n.\r\n",
		".\r\n":                  "..\r\n.\r\n",
		".a\r\n..\r\nb.c\r\n.":   "..a\r\n...\r\nb.c\r\n..\r\n.\r\n",
		"\r\n.\r\n.\r\n":         "\r\n..\r\n..\r\n.\r\n",
		"x\n.\r\nMAIL FROM:<>\n": "x\n..\r\nMAIL FROM:<>\n\r\n.\r\n",
	} {
		if got := string(appendBody(nil, &driver.Message{Body: []byte(body)})) + finalDot; got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// A body with NoDotStuffing is written unchanged, with a final line end.
func TestBodyWithoutDotsIsWrittenUnchanged(t *testing.T) {
	for body, want := range map[string]string{"a\r\nb.\r\n": "a\r\nb.\r\n", "a": "a\r\n", "": ""} {
		if got := string(appendBody(nil, &driver.Message{Body: []byte(body), NoDotStuffing: true})); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

func FuzzAppendBody(f *testing.F) {
	f.Add([]byte(".\r\n..\r\nx"))
	f.Fuzz(func(t *testing.T, body []byte) {
		wire := append(appendBody(nil, &driver.Message{Body: body}), finalDot...)
		// The final dot is the only dot alone on a line, with any kind of line end.
		if i := bytes.Index(append([]byte("\n"), wire...), []byte("\n.\r\n")); i != len(wire)-3 {
			t.Fatalf("%q ends at %d: %q", body, i, wire)
		}
		if i := bytes.Index(append([]byte("\n"), wire...), []byte("\n.\n")); i >= 0 {
			t.Fatalf("%q has another end: %q", body, wire)
		}
	})
}

func TestConfigErrorNamesTheSetting(t *testing.T) {
	good := Config{Address: "mail.example.com:587"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for pointer, change := range map[string]func(*Config){
		"/address":  func(c *Config) { c.Address = "mail.example.com" },
		"/hello":    func(c *Config) { c.Hello = "a b" },
		"/tls":      func(c *Config) { c.TLS = "maybe" },
		"/grouping": func(c *Config) { c.Grouping = "wild" },
		"/username": func(c *Config) { c.Password = "x" },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), pointer+":") {
			t.Errorf("%s: %v", pointer, err)
		}
	}
	for name, want := range map[string]string{"": "localhost", "my_host": "my-host", "mail.example.com": "mail.example.com", "-x-": "x"} {
		if got := domain(name); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}
