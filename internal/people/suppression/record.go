// Package suppression has the values of the suppression list: the addresses to which nothing is
// sent.
package suppression

import (
	"crypto/sha256"
)

// A Record is a suppressed address as it is stored.
type Record struct {
	Service uint32 // 0: all services
	Kind    uint8
	Hash    Hash
	Reason  string
	At      int64  // Unix nanoseconds
	Until   int64  // Unix nanoseconds; 0: for ever
	Source  string // not loaded at start
	Address string // not loaded at start; "": only the hash is stored
	Tag     uint64 // 0: not known
	Lifted  bool
}

// A Hash is the HMAC-SHA-256 of the normal form of an address.
type Hash [sha256.Size]byte
