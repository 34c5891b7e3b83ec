package dkim

import (
	"strings"
	"time"
)

// A Key is a private key that signs for a domain.
type Key struct {
	Domain   string    // d=
	Selector string    // s=
	From     time.Time // from when on it signs, if there is no newer one; zero: always
	*Private
}

// ValidName reports whether a text is a name of the DNS, in small letters and ASCII.
func ValidName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return len(name) <= 253
}

// Name is where the record of the key stands in the DNS.
func (k *Key) Name() string { return k.Selector + "._domainkey." + k.Domain }

// At returns the keys that sign at a time: of those that have one domain and one
// algorithm the newest that may, in the order in which they stand.
func At(keys []*Key, now time.Time) (signers []*Key) {
	for _, k := range keys {
		if k.From.After(now) {
			continue
		}
		known := false
		for i, other := range signers {
			if other.Domain == k.Domain && other.algorithm == k.algorithm {
				if known = true; k.From.After(other.From) {
					signers[i] = k
				}
			}
		}
		if !known {
			signers = append(signers, k)
		}
	}
	return signers
}
