package sink

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
)

// A faultInjector decides which faults to inject. Refusals depend on the recipient, so that
// they are the same in every run; closed connections and delays depend on a count of
// messages.
type faultInjector struct {
	Inject
	temp, perm, delay, beforeData, inData, beforeReply uint64 // shares of 2^64

	draws atomic.Uint64

	mu      sync.Mutex
	refused map[uint64]struct{} // recipients that already got their 4xx
}

func newFaultInjector(in Inject) *faultInjector {
	return &faultInjector{
		Inject: in, refused: make(map[uint64]struct{}),
		temp: share(in.TempFail), perm: share(in.PermFail), delay: share(in.DelayShare),
		beforeData: share(in.DropBeforeData), inData: share(in.DropInData), beforeReply: share(in.DropBeforeReply),
	}
}

func share(f float64) uint64 {
	if f >= 1 {
		return math.MaxUint64
	}
	return uint64(f * (1 << 64))
}

// hit decides at random, in a sequence that the seed determines.
func (s *faultInjector) hit(share uint64) bool {
	return share > 0 && splitmix64(s.Seed^s.draws.Add(1)) <= share
}

// The injected replies.
const (
	pass = iota
	tempFail
	permFail
)

// verdict decides about one attempt for a recipient.
func (s *faultInjector) verdict(recipient []byte) int {
	if s.temp == 0 && s.perm == 0 {
		return pass
	}
	h := xxh3.HashSeed(recipient, s.Seed)
	if s.perm > 0 && h <= s.perm {
		return permFail
	}
	if s.temp == 0 || splitmix64(h) > s.temp {
		return pass
	}
	if s.TempFailAlways {
		return tempFail
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.refused[h]; again {
		return pass
	}
	s.refused[h] = struct{}{}
	return tempFail
}

// splitmix64 is the finaliser of splitmix64 (Steele, Lea, Flood, 2014).
func splitmix64(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
