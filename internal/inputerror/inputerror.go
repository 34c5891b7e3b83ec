// Package inputerror builds the errors for invalid input, with the JSON pointer of the field, a
// hint, and a suggestion for a misspelled name. The packages that validate documents and requests
// use it. It keeps no state.
package inputerror

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// maxNamesInHint is the number of known names that a hint lists.
const maxNamesInHint = 8

// Quote quotes a text, and shortens it if it is too long for a message.
func Quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}

// Invalid returns an error with code Invalid about the field at the pointer.
func Invalid(pointer, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// DidYouMean returns a hint that lists the known names similar to name, or all known names if
// none is similar. It returns none if no name is known.
func DidYouMean(name string, known iter.Seq[string], none string) string {
	all := slices.Sorted(known)
	if len(all) == 0 {
		return none
	}
	var near []string
	for _, k := range all {
		if distance(strings.ToLower(name), strings.ToLower(k)) <= 1+len(k)/4 {
			near = append(near, k)
		}
	}
	if len(near) > 0 {
		return "did you mean " + strings.Join(near, " or ") + "?"
	}
	if len(all) > maxNamesInHint {
		return "valid names are " + strings.Join(all[:maxNamesInHint], ", ") + ", …"
	}
	return "valid names are " + strings.Join(all, ", ")
}

// distance returns the Levenshtein distance of a and b in bytes.
func distance(a, b string) int {
	if max(len(a), len(b)) > 128 {
		return max(len(a), len(b))
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// Pointer joins names into a JSON pointer (RFC 6901).
func Pointer(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(n, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// WithPrefix returns err with prefix added to its pointer and to the pointers of its details.
func WithPrefix(prefix string, err error) *fanfare.Error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return Invalid(prefix, "", "%v", err)
	}
	moved := *e
	moved.Pointer = prefix + e.Pointer
	moved.Details = nil
	for _, d := range e.Details {
		moved.Details = append(moved.Details, WithPrefix(prefix, d))
	}
	return &moved
}

// Join returns the first error with the others as its details, or nil if there are none.
func Join(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
	first := *wrong[0]
	first.Details = append(slices.Clip(first.Details), wrong[1:]...)
	return &first
}

// WithPointer returns err with another pointer. NotFound becomes Invalid: input is invalid if
// it refers to an object that does not exist.
func WithPointer(pointer string, err error) *fanfare.Error {
	moved := *WithPrefix("", err)
	moved.Pointer = pointer
	if moved.Code == fanfare.NotFound {
		moved.Code = fanfare.Invalid
	}
	return &moved
}

// TooLarge returns the error for a field that has size bytes.
func TooLarge(pointer string, size, limit int) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.TooLarge, Pointer: pointer, Message: fmt.Sprintf("the value has %d bytes; at most %d are allowed", size, limit)}
}
