package dispatch

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

func refs(positions ...uint32) []fanfare.DeliveryRef {
	list := make([]fanfare.DeliveryRef, len(positions))
	for i, p := range positions {
		list[i] = fanfare.DeliveryRef{Day: 1, Manifest: 64, Position: p}
	}
	return list
}

func TestClaimIsExclusive(t *testing.T) {
	c := newClaims()
	if got := c.Take(refs(1, 2, 3)); !slices.Equal(got, refs(1, 2, 3)) {
		t.Errorf("all are free: %v", got)
	}
	if got := c.Take(refs(2, 4, 4, 3, 5)); !slices.Equal(got, refs(4, 5)) {
		t.Errorf("2 and 3 are taken, and 4 once: %v", got)
	}
	c.Release(refs(2, 9)...)
	if got := c.Take(refs(1, 2)); !slices.Equal(got, refs(2)) {
		t.Errorf("only 2 was given back: %v", got)
	}
	c.Release(refs(1, 2, 3, 4, 5)...)
	if len(c.held) != 0 {
		t.Errorf("%d claims are left", len(c.held))
	}
}

// Jobs of the same content stand together, not in the order of their claims.
func TestReleaseUnusedIgnoresTheOrderOfJobs(t *testing.T) {
	out := &loaded{}
	l := &loop{stage: &Stage{claims: newClaims()}}
	out.claimed = l.stage.claims.Take(refs(1, 2, 3, 4))
	for _, ref := range refs(4, 1, 2) {
		out.jobs = append(out.jobs, deliver.Job{Message: driver.Message{Delivery: ref}})
	}
	l.releaseUnused(out)
	if got := l.stage.claims.Take(refs(1, 2, 3, 4)); !slices.Equal(got, refs(3)) {
		t.Errorf("%v are free, want 3 alone", got)
	}
}

func TestConcurrentClaimsNeverShareADelivery(t *testing.T) {
	c := newClaims()
	var owners [200]int32
	var mu sync.Mutex
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 300 {
				var wanted []uint32
				for p := uint32(random.IntN(len(owners))); int(p) < len(owners) && len(wanted) < 40; p += 1 + uint32(random.IntN(3)) {
					wanted = append(wanted, p)
				}
				mine := c.Take(refs(wanted...))
				mu.Lock()
				for _, ref := range mine {
					if owners[ref.Position]++; owners[ref.Position] != 1 {
						t.Errorf("delivery %d has %d owners", ref.Position, owners[ref.Position])
					}
				}
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				for _, ref := range mine {
					owners[ref.Position]--
				}
				mu.Unlock()
				c.Release(mine...)
			}
		})
	}
	workers.Wait()
	if len(c.held) != 0 {
		t.Errorf("%d claims are left", len(c.held))
	}
}
