package mime

import (
	"mime"
	"net/mail"
	"strings"
	"testing"
)

func TestDisplayNamesSurvive(t *testing.T) {
	for _, name := range []string{"", "Ada", "Ada Lovelace", "Lovelace, Ada", `A "quoted" \ name`, "Ärger & Söhne", "=?utf-8?q?x?=",
		strings.Repeat("long name ", 20), strings.Repeat("東", 80), "a  b", " trimmed ", "<x@y.z>"} {
		line, _, err := AppendMailbox(nil, "From", "from", mail.Address{Name: name, Address: "a@example.org"})
		if err != nil {
			t.Fatal(err)
		}
		m, err := mail.ReadMessage(strings.NewReader(string(line) + "\r\n"))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		parser := mail.AddressParser{WordDecoder: new(mime.WordDecoder)}
		a, err := parser.Parse(m.Header.Get("From"))
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if a.Name != strings.TrimSpace(name) || a.Address != "a@example.org" {
			t.Errorf("%q became %q", name, a.Name)
		}
	}
}
