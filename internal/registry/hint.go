package registry

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// maxNamesInHint is how many known names a hint lists.
const maxNamesInHint = 8

func quote(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return strconv.Quote(s)
}

func invalid(pointer, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Pointer: pointer, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// didYouMean proposes the known names, the ones near to name alone if there are such.
func didYouMean(name string, known iter.Seq[string], none string) string {
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
		return "known are " + strings.Join(all[:maxNamesInHint], ", ") + ", …"
	}
	return "known are " + strings.Join(all, ", ")
}

// distance is the number of bytes to insert, remove or replace to get from a to
// b (Levenshtein).
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

// pointer joins names to a JSON pointer (RFC 6901).
func pointer(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(n, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// below moves an error of a part to where the part is: its pointer, and those
// of its details, are put behind at.
func below(at string, err error) *fanfare.Error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return invalid(at, "", "%v", err)
	}
	moved := *e
	moved.Pointer = at + e.Pointer
	moved.Details = nil
	for _, d := range e.Details {
		moved.Details = append(moved.Details, below(at, d))
	}
	return &moved
}

// gather makes one error of many: the first, with the others as its details.
func gather(wrong []*fanfare.Error) error {
	if len(wrong) == 0 {
		return nil
	}
	first := *wrong[0]
	first.Details = append(slices.Clip(first.Details), wrong[1:]...)
	return &first
}

// at is an error that is about the pointer and nothing else. What a member of the
// input names and is not there makes the input wrong: the code becomes Invalid.
func at(pointer string, err error) *fanfare.Error {
	moved := *below("", err)
	moved.Pointer = pointer
	if moved.Code == fanfare.NotFound {
		moved.Code = fanfare.Invalid
	}
	return &moved
}
