package backup

import (
	"path"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// Format is the version of the format that this program writes, and the highest that it reads.
const Format = 3 // since 2: sessions.db; since 3: mailboxes.db

// The names of the parts, in their order in a backup.
const (
	headerPart    = "backup.json"
	eventsDir     = "events"     // events/000001 and following: groups of unmatched events
	daysDir       = "deliveries" // deliveries/deliveries-20261120.db: a file for each day
	keySuffix     = ".key"       // such as link.key: secrets that cannot be recreated
	sessionsPart  = "sessions.db"
	mailboxesPart = "mailboxes.db"
	controlPart   = "control.db"
	manifestPart  = "manifest.json"
	sumPart       = "manifest.sha256" // the hash of manifest.json, in hex
)

// A Header is the first part.
type Header struct {
	Format  int       `json:"format"`
	Fanfare string    `json:"fanfare"` // version of the program that wrote it
	Began   time.Time `json:"began"`
	Bytes   int64     `json:"bytes"` // estimated size of the rest
}

// A Manifest is the last part: the list of all others.
type Manifest struct {
	Format    int              `json:"format"`
	Fanfare   string           `json:"fanfare"`
	Began     time.Time        `json:"began"`
	Ended     time.Time        `json:"ended"`
	Events    int              `json:"events"`     // in the parts below events/
	LastEvent fanfare.EventSeq `json:"last_event"` // the highest of them, or 0
	Parts     []Part           `json:"parts"`
}

// A Part is one file of a backup.
type Part struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"` // in hex
}

// Bytes is the size of all parts.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, p := range m.Parts {
		n += p.Size
	}
	return n
}

// Days counts the files of days.
func (m *Manifest) Days() int {
	n := 0
	for _, p := range m.Parts {
		if strings.HasPrefix(p.Name, daysDir+"/") {
			n++
		}
	}
	return n
}

// known reports whether a name is valid for a part. A restore uses it as a file name.
func known(name string) bool {
	dir, file := path.Split(name)
	if file == "" || strings.Trim(file, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" || strings.HasPrefix(file, ".") {
		return false
	}
	switch dir {
	case "":
		return name == controlPart || name == sessionsPart || name == mailboxesPart || strings.HasSuffix(name, keySuffix)
	case eventsDir + "/":
		return true
	case daysDir + "/":
		return isDay(file)
	}
	return false
}

// isDay reports whether a file name is the name of a day's file.
func isDay(file string) bool {
	day, ok := strings.CutPrefix(file, "deliveries-")
	if !ok {
		return false
	}
	if day, ok = strings.CutSuffix(day, ".db"); !ok {
		return false
	}
	_, err := fanfare.ParseDay(day)
	return err == nil
}
