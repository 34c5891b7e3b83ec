package kit

import "runtime"

// giveWayEvery is at how many steps others go first. Those of an import take one to
// five microseconds.
const giveWayEvery = 64

// GiveWay is called with each step, counted from 0, of work of which there is much,
// and now and then has it wait behind all that is ready to run. A goroutine that only
// computes keeps its processor for 10 ms otherwise, and an event passes a dozen of
// them on its way. Who holds what others wait for does not give way.
func GiveWay(step int) {
	if step%giveWayEvery == giveWayEvery-1 {
		runtime.Gosched()
	}
}
