package core

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// MaxInt is the largest number of an Int or UnsignedInt (RFC 8620, section 1.3).
const MaxInt = 1<<53 - 1

// An ID identifies a record (RFC 8620, section 1.2).
type ID string

// maxID is the largest length of an ID in bytes.
const maxID = 255

// Valid reports whether an ID has the permitted length and characters.
func (id ID) Valid() bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(string(id), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	})
}

// UTC returns a time as a UTCDate (RFC 8620, section 1.4).
func UTC(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

// ParseUTC reads a UTCDate.
func ParseUTC(text string) (time.Time, error) {
	if !strings.HasSuffix(text, "Z") || strings.ToUpper(text) != text {
		return time.Time{}, fmt.Errorf("%.40q is not a time in UTC such as 2026-11-27T17:00:00Z", text)
	}
	return ParseDate(text)
}

// ParseDate reads a Date (RFC 8620, section 1.4), which is a time with any offset.
func ParseDate(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || strings.ToUpper(text) != text {
		return time.Time{}, fmt.Errorf("%.40q is not a time such as 2026-11-27T17:00:00Z", text)
	}
	return t, nil
}

// A Date is a Date argument.
type Date struct{ time.Time }

// UnmarshalJSON reads a Date.
func (d *Date) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	t, err := ParseDate(s)
	d.Time = t
	return err
}

// A UTCDate is a UTCDate argument.
type UTCDate struct{ time.Time }

// UnmarshalJSON reads a UTCDate.
func (d *UTCDate) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	t, err := ParseUTC(s)
	d.Time = t
	return err
}
