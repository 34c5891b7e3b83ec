package conditiontest

import "math/rand/v2"

// Choices makes the decisions of a Generator.
type Choices interface {
	// Intn returns a number from 0 to n-1. When no decisions are left, it returns 0, which
	// always selects the simplest alternative.
	Intn(n int) int
}

// Seeded returns random Choices that are the same for the same seed.
func Seeded(seed uint64) Choices { return random{rand.New(rand.NewPCG(seed, 18))} }

type random struct{ *rand.Rand }

func (r random) Intn(n int) int { return r.IntN(n) }

// FromBytes returns Choices that the bytes of a fuzzer determine.
func FromBytes(data []byte) Choices { return &given{data} }

type given struct{ left []byte }

func (b *given) Intn(n int) int {
	take := 1
	if n > 256 {
		take = 2
	}
	value := 0
	for range take {
		if len(b.left) == 0 {
			return 0
		}
		value, b.left = value<<8|int(b.left[0]), b.left[1:]
	}
	return value % n
}
