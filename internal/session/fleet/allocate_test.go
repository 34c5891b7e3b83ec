package fleet

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func named(worker string) key { return key{"s", worker} }

func TestAllocateSpreadsByFreeCores(t *testing.T) {
	hosts := []host{
		{"small", 2, 8, map[key]capacity{named("a"): {max: 8}}},
		{"large", 8, 8, map[key]capacity{named("a"): {max: 8}}},
	}
	for instances, want := range map[int][2]int{0: {0, 0}, 1: {0, 1}, 6: {0, 6}, 8: {1, 7}, 10: {2, 8}, 16: {8, 8}, 100: {8, 8}} {
		got := allocate([]demand{{named("a"), instances, 1}}, hosts)
		if got[0][named("a")] != want[0] || got[1][named("a")] != want[1] {
			t.Errorf("%d instances: %v, want %v", instances, got, want)
		}
	}
}

func TestAllocateLeavesInstancesWhereTheyAre(t *testing.T) {
	hosts := []host{
		{"old", 2, 8, map[key]capacity{named("a"): {max: 8, current: 6}}},
		{"new", 64, 64, map[key]capacity{named("a"): {max: 64}}},
	}
	got := allocate([]demand{{named("a"), 7, 1}}, hosts)
	if got[0][named("a")] != 6 || got[1][named("a")] != 1 {
		t.Errorf("growth: %v", got)
	}
	got = allocate([]demand{{named("a"), 4, 1}}, hosts)
	if got[0][named("a")] != 4 || got[1][named("a")] != 0 {
		t.Errorf("reduction: %v", got)
	}
}

func TestAllocateTakesFromWorkersThatHaveMore(t *testing.T) {
	hosts := []host{{"one", 8, 8, map[key]capacity{named("a"): {max: 8, current: 8}, named("b"): {max: 8}}}}
	got := allocate([]demand{{named("a"), 8, 1}, {named("b"), 8, 1}}, hosts)
	if got[0][named("a")] != 4 || got[0][named("b")] != 4 {
		t.Errorf("two workers that both want all: %v", got)
	}
	got = allocate([]demand{{named("a"), 8, 1}, {named("b"), 1, 1}}, hosts)
	if got[0][named("a")] != 7 || got[0][named("b")] != 1 {
		t.Errorf("one that wants little: %v", got)
	}
}

func TestAllocateAlwaysKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var demands []demand
		for i := range rapid.IntRange(1, 4).Draw(t, "workers") {
			demands = append(demands, demand{named(fmt.Sprint(i)), rapid.IntRange(0, 20).Draw(t, "instances"), rapid.IntRange(1, 4).Draw(t, "cost")})
		}
		var hosts []host
		for i := range rapid.IntRange(0, 4).Draw(t, "hosts") {
			h := host{fmt.Sprint(i), rapid.IntRange(1, 8).Draw(t, "cores"), rapid.IntRange(0, 12).Draw(t, "max"), map[key]capacity{}}
			for _, d := range demands {
				if rapid.Bool().Draw(t, "allowed") {
					h.workers[d.key] = capacity{rapid.IntRange(0, 10).Draw(t, "most"), rapid.IntRange(0, 12).Draw(t, "current")}
				}
			}
			hosts = append(hosts, h)
		}
		got := allocate(demands, hosts)
		for i, h := range hosts {
			all := 0
			for k, n := range got[i] {
				if n < 0 || n > h.workers[k].max {
					t.Fatalf("host %d runs %d of %v: %+v", i, n, k, h)
				}
				all += n
			}
			if all > h.max {
				t.Fatalf("host %d runs %d instances: %+v", i, all, h)
			}
		}
		for _, d := range demands {
			total, left := 0, false
			for i, h := range hosts {
				total += got[i][d.key]
				used := 0
				for _, n := range got[i] {
					used += n
				}
				left = left || used < h.max && got[i][d.key] < h.workers[d.key].max
			}
			if total > d.instances {
				t.Fatalf("%d of %d instances of %v", total, d.instances, d.key)
			}
			if total < d.instances && left {
				t.Fatalf("%d of %d instances of %v although there is capacity", total, d.instances, d.key)
			}
		}
		for i := range hosts { // a second plan changes nothing
			for k, r := range hosts[i].workers {
				hosts[i].workers[k] = capacity{r.max, got[i][k]}
			}
		}
		if again := allocate(demands, hosts); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatalf("a second plan differs: %v, %v", got, again)
		}
	})
}
