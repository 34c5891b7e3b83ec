package limit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestMedianFollowsTheDurations(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	for _, typical := range []time.Duration{20 * time.Microsecond, 5 * time.Millisecond, 2 * time.Second} {
		var m Median
		m.Add(time.Second)
		for range 3000 { // log-normal around the typical one, with one in fifty a hundred times as long
			d := float64(typical) * math.Exp(random.NormFloat64()/2)
			if random.IntN(50) == 0 {
				d *= 100
			}
			m.Add(time.Duration(d))
		}
		if got := m.Value(); got < typical*3/4 || got > typical*4/3 {
			t.Errorf("the median of %v is taken for %v", typical, got)
		}
	}
}
