package dkim

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Record returns the DNS record of the key (RFC 6376, section 3.6.1), as one text.
func (p *Private) Record() string {
	return "v=DKIM1; k=" + p.algorithm + "; p=" + base64.StdEncoding.EncodeToString(p.public)
}

// maxString is the maximum length in bytes of a string in a TXT record (RFC 1035, section 3.3).
const maxString = 255

// ZoneLine is the record of a key as a line of a zone file.
func (k *Key) ZoneLine() string { return ZoneLine(k.Name(), k.Record()) }

// ZoneLine returns a DNS text record as a line of a zone file, split into strings that are not
// too long.
func ZoneLine(name, text string) string {
	var line strings.Builder
	line.WriteString(name + ". IN TXT")
	for text != "" {
		n := min(len(text), maxString)
		fmt.Fprintf(&line, " %q", text[:n])
		text = text[n:]
	}
	return line.String()
}

// A Published is the content of a record in the DNS.
type Published struct {
	Algorithm string
	Revoked   bool // the record no longer contains a key
	Testing   bool // verifiers treat signed messages as if they were not signed
	public    []byte
}

// ParseRecord reads the text of a TXT record.
func ParseRecord(text string) (Published, error) {
	p := Published{Algorithm: RSA}
	seen := map[string]bool{}
	for i, tag := range strings.Split(text, ";") {
		if tag = strings.TrimSpace(tag); tag == "" {
			continue
		}
		name, value, ok := strings.Cut(tag, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case !ok || name == "":
			return p, fmt.Errorf("%q is not of the form tag=value", shortened(tag))
		case seen[name]:
			return p, fmt.Errorf("the tag %s occurs twice", name)
		}
		seen[name] = true
		switch name {
		case "v":
			switch {
			case value != "DKIM1":
				return p, fmt.Errorf("the tag v must be DKIM1, not %q", shortened(value))
			case i > 0:
				return p, errors.New("v=DKIM1 must be its first tag")
			}
		case "k":
			p.Algorithm = value
		case "h":
			if !listed(value, "sha256") {
				return p, fmt.Errorf("it permits only the hash algorithms %s, but the signatures use sha256", shortened(value))
			}
		case "s":
			if !listed(value, "email") && !listed(value, "*") {
				return p, fmt.Errorf("it is valid for the service types %s, but not for email", shortened(value))
			}
		case "t":
			p.Testing = listed(value, "y")
		case "p":
			value = strings.Join(strings.Fields(value), "")
			public, err := base64.StdEncoding.DecodeString(value)
			if err != nil {
				return p, fmt.Errorf("its key (p=) is not valid Base64; it may be truncated")
			}
			p.public, p.Revoked = public, value == ""
		}
	}
	if !seen["p"] {
		return p, fmt.Errorf("it has no key (p=)")
	}
	return p, nil
}

func listed(list, name string) bool {
	for one := range strings.SplitSeq(list, ":") {
		if strings.TrimSpace(one) == name {
			return true
		}
	}
	return false
}

func shortened(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

// Of returns why a record does not belong to a private key, or nil if it does.
func (p *Published) Of(key *Private) error {
	switch {
	case p.Revoked:
		return fmt.Errorf("the record revokes the key: its p= is empty")
	case p.Algorithm != key.algorithm:
		return fmt.Errorf("the record is for the key type %s, but the key has the type %s", p.Algorithm, key.algorithm)
	case bytes.Equal(p.public, key.public):
		return nil
	case key.algorithm == RSA && sameRSA(p.public, key.public):
		return nil
	}
	return fmt.Errorf("the record contains a different key")
}

// sameRSA compares public keys, one of which may be a bare PKCS #1 key (erratum
// 3017 of RFC 6376).
func sameRSA(published, own []byte) bool {
	bare, err := x509.ParsePKCS1PublicKey(published)
	if err != nil {
		return false
	}
	whole, err := x509.ParsePKIXPublicKey(own)
	key, ok := whole.(*rsa.PublicKey)
	return err == nil && ok && bare.Equal(key)
}
