package dkim

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Key is a private key that signs for a domain.
type Key struct {
	Domain   string    // d=
	Selector string    // s=
	From     time.Time // time from which it signs unless there is a newer key; zero: always
	Waits    bool      // does not sign until its record is seen in the DNS
	*Private
}

// ValidName reports whether a text is a name of the DNS, in lower-case ASCII.
func ValidName(name string) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return len(name) <= 253
}

// Name returns the DNS name of the key's record.
func (k *Key) Name() string { return k.Selector + "._domainkey." + k.Domain }

// Seen returns why the texts at the name of the key are not the one record that receivers need
// to verify its signatures, or nil if they are.
func (k *Key) Seen(texts []string) error {
	switch len(texts) {
	case 0:
		return errors.New("its record is not in the DNS")
	case 1:
	default:
		return fmt.Errorf("the DNS has %d records for this key, so receivers may use any of them", len(texts))
	}
	record, err := ParseRecord(texts[0])
	if err == nil {
		err = record.Of(k.Private)
	}
	switch {
	case err != nil:
		return fmt.Errorf("its record in the DNS does not match: %w", err)
	case record.Testing:
		return errors.New("its record has the test flag (t=y)")
	}
	return nil
}

// At returns the keys that sign at a time, in their order: for each domain and algorithm, the
// newest key that may sign.
func At(keys []*Key, now time.Time) (signers []*Key) {
	for _, k := range keys {
		if k.Waits || k.From.After(now) {
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
