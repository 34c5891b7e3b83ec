package dkim

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
)

// The example of RFC 6376, section 3.4.5.
func TestRelaxedFormEqualsTheRFCExample(t *testing.T) {
	for field, want := range map[string]string{
		"A: X\r\n":                  "a:X\r\n",
		"B : Y\t\r\n\tZ  \r\n":      "b:Y Z\r\n",
		"Subject:\r\n":              "subject:\r\n",
		"Subject: \t \r\n":          "subject:\r\n",
		"SUBJect: AbC \r\n":         "subject:AbC\r\n",
		"Subject:\r\n a\r\n\tb\r\n": "subject:a b\r\n",
		"X:a:b : c\r\n":             "x:a:b : c\r\n",
	} {
		if got := appendField(nil, []byte(field), strings.IndexByte(field, ':')); string(got) != want {
			t.Errorf("%q becomes %q, want %q", field, got, want)
		}
	}
	for body, want := range map[string]string{
		" C \r\nD \t E\r\n\r\n\r\n": " C\r\nD E\r\n",
		"":                          "",
		"\r\n":                      "",
		"\r\n\r\n":                  "",
		" \r\n":                     "",
		" \t\r\n\t\r\n":             "",
		"a":                         "a\r\n",
		"a ":                        "a\r\n",
		"a\r\n":                     "a\r\n",
		"a\r\n\r\n":                 "a\r\n",
		"a\r\n\r\nb\r\n":            "a\r\n\r\nb\r\n",
		"\r\na\r\n":                 "\r\na\r\n",
		"\r\n\r\na\r\n\r\n \r\n":    "\r\n\r\na\r\n",
		"a b c\r\n":                 "a b c\r\n",
		"a\tb\r\n":                  "a b\r\n",
		"a  b\r\n":                  "a b\r\n",
		"  a\r\n":                   " a\r\n",
		"a \r\nb\r\n":               "a\r\nb\r\n",
	} {
		got, _ := relaxedBody([]byte(body), nil, false)
		if string(got) != want {
			t.Errorf("%q becomes %q, want %q", body, got, want)
		}
		if slow := appendBody(nil, []byte(body), false); string(slow) != want {
			t.Errorf("%q becomes %q line by line, want %q", body, slow, want)
		}
	}
}

// Message, keys and signatures of RFC 8463, appendix A.
const (
	exampleFields = "From: Joe SixPack <joe@football.example.com>\r\n" +
		"To: Suzie Q <suzie@shopping.example.net>\r\n" +
		"Subject: Is dinner ready?\r\n" +
		"Date: Fri, 11 Jul 2003 21:00:37 -0700 (PDT)\r\n" +
		"Message-ID: <20030712040037.46341.5F8J@football.example.com>\r\n"
	exampleBody = "Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n"
	exampleHash = "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8="
	exampleSeed = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
	exampleEd   = "DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed;\r\n" +
		" d=football.example.com; i=@football.example.com;\r\n" +
		" q=dns/txt; s=brisbane; t=1528637909; h=from : to :\r\n" +
		" subject : date : message-id : from : subject : date;\r\n" +
		" bh=2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=;\r\n" +
		" b="
	exampleSigned = "/gCrinpcQOoIfuHNQIbq4pgh9kyIK3AQUdt9OdqQehSwhEIug4D11BusFa3bT3FY5OsU7ZbnKELq+eXdp1Q1Dw=="
	exampleRecord = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

func TestSignatureEqualsTheRFCExample(t *testing.T) {
	key, err := ParsePrivate([]byte(exampleSeed + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := key.Record(); got != exampleRecord {
		t.Errorf("the record is %q", got)
	}
	body, _ := relaxedBody([]byte(exampleBody), nil, false)
	hash := sha256.Sum256(body)
	if got := base64.StdEncoding.EncodeToString(hash[:]); got != exampleHash {
		t.Errorf("the body's hash is %s", got)
	}
	var fields []byte
	for field := range strings.SplitAfterSeq(exampleFields, "\r\n") {
		if field != "" {
			fields = appendField(fields, []byte(field), strings.IndexByte(field, ':'))
		}
	}
	fields = bytes.TrimSuffix(appendField(fields, []byte(exampleEd), len("DKIM-Signature")), crlf)
	digest := sha256.Sum256(fields)
	signature, err := key.sign(&digest)
	if got := base64.StdEncoding.EncodeToString(signature); err != nil || got != exampleSigned {
		t.Errorf("%s, %v", got, err)
	}
}
