package httpio

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"fanfare.dev/fanfare"
)

// TagOf returns the strong entity tag of v, which is a hash of its JSON (RFC 9110,
// section 8.8.3). Members are in the order of their struct and maps are sorted, so
// equal values have equal tags.
func TagOf(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, nil
}

// MayChange checks the preconditions of a change against the tag of the current object,
// or "" if it does not exist (RFC 9110, sections 13.1.1, 13.1.2 and 13.2.2).
// A request without such headers has no preconditions.
func MayChange(h http.Header, tag string) error {
	if wanted := h.Values("If-Match"); len(wanted) > 0 && !matches(wanted, tag, false) {
		e := &fanfare.Error{Code: fanfare.PreconditionFailed, Message: "the object has changed since it was read: If-Match does not match", Hint: "read the object again, and send the change with its current ETag"}
		if tag == "" {
			e.Message, e.Hint = "the object does not exist: If-Match does not match", "omit the header to create the object"
		}
		return e
	}
	if unwanted := h.Values("If-None-Match"); len(unwanted) > 0 && matches(unwanted, tag, true) {
		return &fanfare.Error{Code: fanfare.PreconditionFailed, Message: "the object already exists: If-None-Match does not allow this request", Hint: "omit the header to replace the object"}
	}
	return nil
}

// Preconditions returns the check of the preconditions of a request, which the writer calls
// with the current object, or nil if it does not exist. It returns nil for a request
// without preconditions.
func Preconditions[T any](r *http.Request) func(is *T) error {
	if len(r.Header["If-Match"]) == 0 && len(r.Header["If-None-Match"]) == 0 {
		return nil
	}
	return func(is *T) error {
		tag := ""
		if is != nil {
			var err error
			if tag, err = TagOf(is); err != nil {
				return err
			}
		}
		return MayChange(r.Header, tag)
	}
}

// IsKnown reports whether the client already has the version with this tag (304).
func IsKnown(h http.Header, tag string) bool {
	return matches(h.Values("If-None-Match"), tag, true)
}

// matches looks for tag in the lists of tags of a header. A star matches any existing
// object. Weak tags match only in the weak comparison (RFC 9110, section 8.8.3.2). A list
// ends at text that is not a tag.
func matches(lists []string, tag string, weak bool) bool {
	if tag == "" {
		return false
	}
	for _, list := range lists {
		if strings.TrimSpace(list) == "*" {
			return true
		}
		for rest := list; ; {
			var candidate string
			var isWeak bool
			if candidate, isWeak, rest = nextTag(rest); candidate == "" {
				break
			}
			if candidate == tag && (weak || !isWeak) {
				return true
			}
		}
	}
	return false
}

// nextTag splits the first tag off a list; tag is "" if there is none.
func nextTag(list string) (tag string, weak bool, rest string) {
	list = strings.TrimLeft(list, " \t,")
	list, weak = strings.CutPrefix(list, "W/")
	if list == "" || list[0] != '"' {
		return "", false, ""
	}
	end := strings.IndexByte(list[1:], '"')
	if end < 0 {
		return "", false, ""
	}
	return list[:end+2], weak, list[end+2:]
}
