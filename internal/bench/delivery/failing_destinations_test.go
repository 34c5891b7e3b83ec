package delivery

import (
	"os"
	"path"
	"strings"
	"testing"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/sink"
)

// The rules of the sink must agree with the states of the destinations.
func TestTheSinkTreatsEachDestinationByItsState(t *testing.T) {
	for _, mix := range []destinationMix{{destinations: 1000, each: 2}, {web: true, destinations: 1000, each: 2, port: "80"}} {
		var rules []sink.HostRule
		for _, text := range mix.sinkRules() {
			rule, err := sink.ParseHostRule(text)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, rule)
		}
		found := map[int]int{}
		hosts := map[string]bool{}
		for d := range mix.destinations {
			host := mix.address(d, 0)
			host = host[strings.LastIndexByte(host, '@')+1:]
			host = strings.TrimSuffix(strings.TrimPrefix(host, "http://"), ":80/p0")
			hosts[host] = true
			got := healthyDestination
			for _, r := range rules {
				if fits, _ := path.Match(r.Host, host); !fits {
					continue
				}
				switch {
				case r.Refuse || r.Hang:
					got = deadDestination
				case r.Delay > 0:
					got = slowDestination
				case r.Rate > 0:
					got = limitedDestination
				}
				break
			}
			if want := mix.state(d); got != want {
				t.Fatalf("%s behaves as %d, want %d", host, got, want)
			}
			found[got]++
		}
		if found[healthyDestination] != 970 || found[deadDestination] != 10 || found[slowDestination] != 10 || found[limitedDestination] != 10 {
			t.Errorf("%v", found)
		}
		if len(hosts) != mix.destinations || mix.healthy() != 970*mix.each {
			t.Errorf("%d hosts, %d messages to the healthy", len(hosts), mix.healthy())
		}
	}
}

func TestFailingDestinationsAreLeftOutOnRequest(t *testing.T) {
	l := &harness.Env{Options: harness.Options{Seed: 1}}
	for _, c := range []struct {
		sick bool
		want int
	}{{true, 400}, {false, 388}} {
		file := t.TempDir() + "/lines"
		n, err := destinationMix{destinations: 200, each: 2}.lines(l, file, c.sick)
		if err != nil || n != c.want {
			t.Errorf("%d lines, %v, want %d", n, err, c.want)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != c.want || strings.Contains(string(text), "@dead") != c.sick {
			t.Errorf("sick %v: %v, %d lines", c.sick, err, strings.Count(string(text), "\n"))
		}
	}
}
