package harness

import (
	"testing"
	"time"
)

func TestTheShareOfOthersLeavesOursOut(t *testing.T) {
	before := parseCPUTimes("cpu  100 0 100 1000 0 0 0 0 50 0")
	after := parseCPUTimes("cpu  500 0 300 1200 200 0 0 0 450 0")
	if got := after.since(before).others(3 * time.Second); got != 0.3 { // 6 s busy, 4 s idle, 3 s of it ours
		t.Errorf("got %v", got)
	}
	if got := (CPUTimes{}).others(0); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

func TestTheShareOfOthersIsThatOfAllWindowsTogether(t *testing.T) {
	window := func(busy, idle, ours time.Duration) WindowUsage {
		return WindowUsage{machine: CPUTimes{busy: busy, idle: idle}, ours: ours}
	}
	var all WindowUsage
	all.Add(window(time.Second, 0, time.Millisecond)) // a tick of the clock is counted here, most of whose time was before
	all.Add(window(0, 6*time.Second, 0))
	all.Add(window(time.Second, 2*time.Second, 999*time.Millisecond))
	if got := all.machine.others(all.ours); got != 0.1 {
		t.Errorf("got %v", got)
	}
}

func TestTheTimeThatOtherTenantsTookIsTheStealTime(t *testing.T) {
	before := parseCPUTimes("cpu  100 0 100 1000 0 0 0 200 50 0")
	after := parseCPUTimes("cpu  300 0 200 1400 0 0 0 500 50 0") // 3 s work, 4 s idle, 3 s stolen
	if got := after.Stolen(before); got != 0.3 {
		t.Errorf("got %v", got)
	}
	if got := (CPUTimes{}).Stolen(CPUTimes{}); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
