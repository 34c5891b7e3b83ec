package syntax

import (
	"cmp"
	"slices"
	"strconv"
)

// Star is the number that stands for "*" in a NumSet: the largest number in use.
const Star uint32 = 0

// A Range is a range of numbers with both ends. An end can be Star, and the first can be larger than the last.
type Range struct{ From, To uint32 }

// A NumSet is a set of sequence numbers or UIDs, or the result of the last SEARCH ("$", RFC 9051, section 6.4.4.1).
type NumSet []Range

// saved is the only range of a NumSet that refers to the result of the last SEARCH.
var saved = Range{From: 1<<32 - 1, To: Star}

// Saved returns the set that refers to the result of the last SEARCH.
func Saved() NumSet { return NumSet{saved} }

// IsSaved reports whether the set refers to the result of the last SEARCH.
func (s NumSet) IsSaved() bool { return len(s) == 1 && s[0] == saved }

// Resolve replaces Star by the largest number, and returns the ranges in ascending order without overlap.
func (s NumSet) Resolve(largest uint32) NumSet {
	out := make(NumSet, 0, len(s))
	for _, r := range s {
		if r.From == Star {
			r.From = largest
		}
		if r.To == Star {
			r.To = largest
		}
		if r.From > r.To {
			r.From, r.To = r.To, r.From
		}
		if r.To == 0 {
			continue // "*" where there is no number
		}
		out = append(out, Range{max(r.From, 1), r.To})
	}
	slices.SortFunc(out, func(a, b Range) int { return cmp.Compare(a.From, b.From) })
	merged := out[:0]
	for _, r := range out {
		if n := len(merged); n > 0 && uint64(r.From) <= uint64(merged[n-1].To)+1 {
			merged[n-1].To = max(merged[n-1].To, r.To)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// Contains reports whether a resolved set has a number.
func (s NumSet) Contains(n uint32) bool {
	i, found := slices.BinarySearchFunc(s, n, func(r Range, n uint32) int { return cmp.Compare(r.From, n) })
	return found || i > 0 && s[i-1].To >= n
}

// Add adds a number that is not smaller than the numbers of a resolved set.
func (s *NumSet) Add(n uint32) {
	if last := len(*s) - 1; last >= 0 && n <= (*s)[last].To {
		return
	} else if last >= 0 && (*s)[last].To == n-1 {
		(*s)[last].To = n
		return
	}
	*s = append(*s, Range{n, n})
}

// Append appends the text of a resolved set, such as 1:3,5.
func (s NumSet) Append(b []byte) []byte {
	for i, r := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(r.From), 10)
		if r.To != r.From {
			b = append(b, ':')
			b = strconv.AppendUint(b, uint64(r.To), 10)
		}
	}
	return b
}

// String returns the text of a resolved set.
func (s NumSet) String() string { return string(s.Append(nil)) }

// Count returns the number of numbers in a resolved set.
func (s NumSet) Count() int64 {
	var n int64
	for _, r := range s {
		n += int64(r.To) - int64(r.From) + 1
	}
	return n
}
