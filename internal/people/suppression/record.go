// Package suppression has the values of the suppression list: the addresses to which nothing is
// sent.
package suppression

import (
	"crypto/sha256"
	"time"
)

// A Record is a suppressed address as it is stored.
type Record struct {
	Service uint32 // 0: all services
	Kind    uint8
	Hash    Hash
	Reason  string
	At      int64  // Unix nanoseconds
	Until   int64  // Unix nanoseconds; 0: permanent
	Source  string // not loaded at start
	Address string // not loaded at start; "": only the hash is stored
	Tag     uint64 // 0: not known
	Lifted  bool
}

// A Hash is the HMAC-SHA-256 of the normal form of an address.
type Hash [sha256.Size]byte

// A Suppression is an address to which nothing is sent.
type Suppression struct {
	Address     string    `json:"address,omitempty" doc:"absent if only a hash is stored, because the subscriber was erased"`
	Hash        string    `json:"hash,omitempty" doc:"hash of the address, if the address is not stored; an import into this server accepts it"`
	Reason      string    `json:"reason" doc:"why it is suppressed: soft_bounces, imported, unsubscribed, hard_bounce, manual, complaint or erased"`
	Source      string    `json:"source,omitempty" doc:"origin of the entry"`
	At          time.Time `json:"at" doc:"start of the suppression"`
	Until       time.Time `json:"until,omitzero" doc:"end of the suppression; absent: permanent"`
	AllServices bool      `json:"all_services,omitempty" doc:"the suppression applies to all services of the server"`
}

// A Filter selects suppressions. Empty fields select all.
type Filter struct {
	Service string // "": only those of all services
	Reason  string
}

// A Cursor is a position in the list.
type Cursor struct {
	At   int64
	Kind uint8
	Hash Hash
}

// isBefore reports whether s comes after the cursor.
func (c *Cursor) isBefore(s *Record) bool {
	return later(&Record{At: c.At, Kind: c.Kind, Hash: c.Hash}, s) < 0
}
