package fleet

import "slices"

// A demand is what one worker needs from the agents.
type demand struct {
	key       key
	instances int
	cost      int // cores that an instance uses
}

// A host is the capacity that an agent has.
type host struct {
	name    string
	cores   int
	max     int // instances of all workers
	workers map[key]capacity
}

// A capacity is the part of one worker.
type capacity struct {
	max     int // instances that the agent may run now; 0: none
	current int // instances that it has
}

// allocate spreads the wanted instances over the hosts: result[i][k] is the number of instances of worker k on hosts[i].
// Instances that run stay where they are. Further ones go to the host with the most free cores, one worker at a time, so that
// all workers grow evenly if there is not enough capacity. If there is none left, a worker gives one up
// to another that has at least two instances less.
func allocate(demands []demand, hosts []host) []map[key]int {
	a := allocation{hosts: hosts, result: make([]map[key]int, len(hosts)), used: make([]int, len(hosts)), cores: make([]int, len(hosts)), total: map[key]int{}}
	for i := range hosts {
		a.result[i] = map[key]int{}
	}
	for _, d := range demands {
		a.keep(d)
	}
	for a.grow(demands) || a.exchange(demands) { // what gave one up may grow elsewhere
	}
	return a.result
}

type allocation struct {
	hosts  []host
	result []map[key]int
	used   []int // instances by host
	cores  []int // used cores by host
	total  map[key]int
}

func (a *allocation) add(host int, d demand, n int) {
	a.result[host][d.key] += n
	a.used[host] += n
	a.cores[host] += n * d.cost
	a.total[d.key] += n
}

// keep leaves the instances where they are, and takes those that are too many from the hosts with the fewest free cores.
func (a *allocation) keep(d demand) {
	for i, h := range a.hosts {
		r := h.workers[d.key]
		a.add(i, d, max(0, min(r.current, r.max, h.max-a.used[i])))
	}
	for a.total[d.key] > d.instances {
		fullest := -1
		for i := range a.hosts {
			if a.result[i][d.key] > 0 && (fullest < 0 || a.free(i) < a.free(fullest)) {
				fullest = i
			}
		}
		a.add(fullest, d, -1)
	}
}

func (a *allocation) free(host int) int { return a.hosts[host].cores - a.cores[host] }

// grow adds one instance, and reports whether there was capacity.
func (a *allocation) grow(demands []demand) bool {
	for _, d := range a.fewestFirst(demands) {
		if a.total[d.key] >= d.instances {
			continue
		}
		if i := a.freest(d.key); i >= 0 {
			a.add(i, d, 1)
			return true
		}
	}
	return false
}

// freest returns the host with the most free cores that has capacity for a worker, or -1.
func (a *allocation) freest(k key) int {
	best := -1
	for i, h := range a.hosts {
		if a.used[i] >= h.max || a.result[i][k] >= h.workers[k].max {
			continue
		}
		if best < 0 || a.free(i) > a.free(best) || a.free(i) == a.free(best) && h.max-a.used[i] > a.hosts[best].max-a.used[best] {
			best = i
		}
	}
	return best
}

func (a *allocation) fewestFirst(demands []demand) []demand {
	sorted := slices.Clone(demands)
	slices.SortStableFunc(sorted, func(x, y demand) int { return a.total[x.key] - a.total[y.key] })
	return sorted
}

// exchange replaces one instance of a worker that has many by one of a worker that has too few.
func (a *allocation) exchange(demands []demand) bool {
	sorted := a.fewestFirst(demands)
	for _, poor := range sorted {
		if a.total[poor.key] >= poor.instances {
			continue
		}
		for _, rich := range slices.Backward(sorted) {
			if a.total[rich.key] < a.total[poor.key]+2 {
				break
			}
			for i, h := range a.hosts {
				if a.result[i][rich.key] > 0 && a.result[i][poor.key] < h.workers[poor.key].max {
					a.add(i, rich, -1)
					a.add(i, poor, 1)
					return true
				}
			}
		}
	}
	return false
}
