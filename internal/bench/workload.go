package bench

import (
	"cmp"
	"fmt"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/condition"
)

// A workload is a topic, its subscriptions and its events. Each is made from its
// number and the seed, so that none has to be kept and two runs see the same.
type workload interface {
	definition() condition.Definition
	// condition makes that of subscription i: a filter, or a rule and its params.
	condition(i int) (filter, rule string, params []byte)
	// event makes the data of event i.
	event(i int) []byte
	// bare is the same work with no conditions in it, for events 0 to events-1.
	bare(events int) bareMatch
}

// workloads makes those of the plan by id, for n subscriptions.
func newWorkload(id string, n int, seed uint64) (workload, error) {
	switch id {
	case "B1":
		return newQuotes(n, seed, false), nil
	case "B1j":
		return newQuotes(n, seed, true), nil
	case "B2":
		return broad{n, seed}, nil
	case "B3":
		return shared{n}, nil
	case "B4":
		return newHeadlines(n, seed), nil
	case "B5":
		return newDifferent(n, seed), nil
	case "B6":
		return newCampaigns(n, seed), nil
	}
	return nil, fmt.Errorf("no workload %q", id)
}

// placeOf is where subscription i lives: they go round the partitions, as those
// of subscribers do that come one after the other.
func placeOf(i int) fanfare.RowID {
	return fanfare.NewRowID(i%fanfare.Partitions, uint32(i/fanfare.Partitions))
}

// entryOf makes subscription i as the index takes it. Every subscriber has one.
func entryOf(w workload, i int) condition.Entry {
	e := condition.Entry{Place: placeOf(i), Subscriber: placeOf(i), Channel: 1}
	e.Filter, e.Rule, e.Params = w.condition(i)
	return e
}

// unit makes a number in [0, 1) of the bits of a hash.
func unit(h uint64) float64 { return float64(h>>11) / (1 << 53) }

// A zipf draws ranks from 0 of which rank r is 1/(r+1) times as frequent as rank 0.
type zipf struct{ upTo []float64 }

func newZipf(n int) zipf {
	z := zipf{make([]float64, n)}
	sum := 0.0
	for r := range z.upTo {
		sum += 1 / float64(r+1)
		z.upTo[r] = sum
	}
	for r := range z.upTo {
		z.upTo[r] /= sum
	}
	return z
}

// rank is the one that u, from [0, 1), falls on.
func (z zipf) rank(u float64) int {
	r, _ := slices.BinarySearchFunc(z.upTo, u, func(upTo, u float64) int {
		if upTo <= u {
			return -1
		}
		return cmp.Compare(upTo, u)
	})
	return min(r, len(z.upTo)-1)
}

// share is the part of all that has rank r.
func (z zipf) share(r int) float64 {
	if r == 0 {
		return z.upTo[0]
	}
	return z.upTo[r] - z.upTo[r-1]
}

// word appends a made-up word of eight letters, another for each number below
// 70^4, so that none is part of another.
func appendWord(dst []byte, k int) []byte {
	const consonants, vowels, syllables, all = "bdfghklmnprstv", "aeiou", 4, 70 * 70 * 70 * 70
	x := k * 7_654_321 % all // neighbours have little in common; it shares no factor with all
	for range syllables {
		dst = append(dst, consonants[x%70/5], vowels[x%5])
		x /= 70
	}
	return dst
}
