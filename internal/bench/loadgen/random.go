package loadgen

import (
	"cmp"
	"slices"
)

// Mix is the finaliser of splitmix64 (Steele, Lea, Flood, 2014).
func Mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Unit returns a number in [0, 1) made from a hash.
func Unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// A Zipf draws ranks from 0 of which rank r is 1/(r+1) times as frequent as rank 0.
type Zipf struct{ UpTo []float64 }

func NewZipf(n int) Zipf {
	z := Zipf{make([]float64, n)}
	sum := 0.0
	for r := range z.UpTo {
		sum += 1 / float64(r+1)
		z.UpTo[r] = sum
	}
	for r := range z.UpTo {
		z.UpTo[r] /= sum
	}
	return z
}

// Rank returns the rank for a number u of [0, 1).
func (z Zipf) Rank(u float64) int {
	r, _ := slices.BinarySearchFunc(z.UpTo, u, func(upTo, u float64) int {
		if upTo <= u {
			return -1
		}
		return cmp.Compare(upTo, u)
	})
	return min(r, len(z.UpTo)-1)
}

// Share returns the probability of rank r.
func (z Zipf) Share(r int) float64 {
	if r == 0 {
		return z.UpTo[0]
	}
	return z.UpTo[r] - z.UpTo[r-1]
}

// AppendWord appends an invented word of eight characters. Each number below 70^4 has
// its own word, and no word is part of another.
func AppendWord(dst []byte, k int) []byte {
	const consonants, vowels, syllables, all = "bdfghklmnprstv", "aeiou", 4, 70 * 70 * 70 * 70
	x := k * 7_654_321 % all // neighbours have little in common; it shares no factor with all
	for range syllables {
		dst = append(dst, consonants[x%70/5], vowels[x%5])
		x /= 70
	}
	return dst
}
