package mailboxes

import (
	"math/rand/v2"
	"testing"
)

func TestUsersActByTheirShares(t *testing.T) {
	for name, mix := range map[string][]action{"IMAP": imapMix, "JMAP": jmapMix} {
		sum := 0
		for _, a := range mix {
			sum += a.share
		}
		if sum != 100 {
			t.Errorf("%s: the shares add up to %d %%", name, sum)
		}
		const n = 100_000
		drawn := map[string]int{}
		random := rand.New(rand.NewPCG(1, 2))
		for range n {
			drawn[choose(mix, random)]++
		}
		for _, a := range mix {
			if got := float64(drawn[a.name]) / n; got < float64(a.share)/100-0.01 || got > float64(a.share)/100+0.01 {
				t.Errorf("%s: %s was drawn in %.3f of the cases, its share is %d %%", name, a.name, got, a.share)
			}
		}
	}
}
