package httpapi

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"fanfare.dev/fanfare"
)

// Page is part of the input of every list.
type Page struct {
	Named
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"maximum number of entries per page"`
	Cursor string `query:"cursor" maxLength:"600" doc:"the value of next from the previous page, with the same filters; default: the first page"`
}

// A listing identifies a list and its filters. A cursor is valid for one listing. It
// contains the key at which a page ended and a checksum, which detects changes but does
// not authenticate.
type listing string

// listingOf returns the listing for a list and its filters.
func listingOf(list, service string, filters ...string) listing {
	return listing(list + "\n" + service + "\n" + strings.Join(filters, "\n"))
}

// Cursors of another version are rejected, like damaged ones.
const (
	cursorVersion = 1
	cursorSum     = 6
)

// cursor returns the cursor for the position after key.
func (l listing) cursor(key string) string {
	return base64.RawURLEncoding.EncodeToString(append(append([]byte{cursorVersion}, l.sum(key)...), key...))
}

// next returns the cursor after key, or "" at the end of the list.
func (l listing) next(key string) string {
	if key == "" {
		return ""
	}
	return l.cursor(key)
}

func (l listing) sum(key string) []byte {
	sum := sha256.Sum256([]byte(string(l) + "\x00" + key))
	return sum[:cursorSum]
}

// key returns the key in cursor, or "" without a cursor.
func (l listing) key(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil && len(raw) > cursorSum && raw[0] == cursorVersion {
		if key := string(raw[1+cursorSum:]); string(l.sum(key)) == string(raw[1:1+cursorSum]) {
			return key, nil
		}
	}
	return "", &fanfare.Error{Code: fanfare.Invalid, Message: "query parameter cursor does not belong to this list with these filters", Hint: "use the value of next from the previous page, or omit the cursor"}
}

// pageOf returns one page of a complete list that is sorted by unique keys. next is ""
// on the last page.
func pageOf[T any](l listing, p *Page, all []T, key func(*T) string) (page []T, next string, err error) {
	after, err := l.key(p.Cursor)
	if err != nil {
		return nil, "", err
	}
	for i := range all {
		k := key(&all[i])
		if after != "" && k <= after {
			continue
		}
		if len(page) == p.Limit {
			return page, l.cursor(key(&page[len(page)-1])), nil
		}
		page = append(page, all[i])
	}
	return orEmpty(page), "", nil
}
