package registry

import (
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare/internal/mail/dkim"
)

// A DKIMKey is one of the keys that a channel signs its mail with. Of those of one
// domain and one algorithm the newest signs that may.
type DKIMKey struct {
	Domain   string    `json:"domain"`   // d=, in lower case
	Selector string    `json:"selector"` // s=
	KeyEnv   string    `json:"key_env,omitempty"`
	KeyFile  string    `json:"key_file,omitempty"`
	From     time.Time `json:"from,omitzero"` // it signs nothing before

	WaitForDNS bool `json:"wait_for_dns,omitempty"` // nor before its record is in the DNS
}

const (
	maxDKIMKeys      = 8 // of a channel
	maxSelectorBytes = 63
)

// KeyText reads the private key from where its settings say. It is never stored and
// never shown.
func (c *Channel) KeyText(k *DKIMKey) (string, error) {
	return c.secret("key", k.KeyEnv, k.KeyFile)
}

// dkim reads the keys of a channel.
func (n node) dkim() (all []DKIMKey) {
	named := map[string]bool{}
	n.each(func(v node) {
		k := v.dkimKey()
		if name := k.Selector + "._domainkey." + k.Domain; named[name] {
			v.fault("give one of them another selector", "two keys have the record %s", inputerror.Quote(name))
		} else {
			named[name] = true
		}
		all = append(all, k)
	})
	if len(all) > maxDKIMKeys {
		n.fault("leave out those that sign no more", "there are %d keys, more than %d", len(all), maxDKIMKeys)
	}
	return all
}

func (n node) dkimKey() (k DKIMKey) {
	n.fields(fields{
		"domain":   func(v node) { k.Domain = v.domain() },
		"selector": func(v node) { k.Selector = v.selector() },
		"key_env":  func(v node) { k.KeyEnv = v.line() },
		"key_file": func(v node) { k.KeyFile = v.path() },
		"from":     func(v node) { k.From = v.moment() },

		"wait_for_dns": func(v node) { k.WaitForDNS = v.yes() },
	})
	n.needs("domain", "such as example.org: that of from, or one above it")
	n.needs("selector", "such as s1: the record stands at s1._domainkey. of the domain")
	n.oneOf("key_env", "key_file")
	if k.KeyEnv+k.KeyFile == "" {
		n.fault("name its file with key_file; fanfare dkim new makes one", "the key is missing")
	}
	return k
}

// selector reads the name of a key within its domain, in small letters.
func (n node) selector() string {
	s := strings.ToLower(n.line())
	if !dkim.ValidName(s) || len(s) > maxSelectorBytes {
		n.fault("letters, digits and hyphens, such as s1", "%s is not a selector", inputerror.Quote(s))
	}
	return s
}

// moment reads a time, or a day that begins at midnight UTC.
func (n node) moment() time.Time {
	s := n.text()
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC()
		}
	}
	n.fault("write it as 2026-11-20T08:00:00Z or 2026-11-20", "%s is not a time", inputerror.Quote(s))
	return time.Time{}
}
