package bench

import (
	"fanfare.dev/fanfare/internal/bench/report"
)

// goals are those of each experiment at scale 1.
var goals = map[string][]report.Goal{
	"N1":  {{Of: "value", AtLeast: 40_000}, {Of: "ratio", AtLeast: 0.65}, {Of: "rss_mb", AtMost: 400}},
	"N1b": {{Of: "ratio", AtLeast: 0.75}},
	"U1":  {{Of: "p99_ms", AtMost: 10}},
	"I1":  {{Of: "value", AtLeast: 200_000}},
	"I3":  {{Of: "value", AtLeast: 10_000}},
	"I4":  {{Of: "value", AtLeast: 10_000}},
	"I4t": {{Of: "value", AtLeast: 10_000}},
	"G1":  {{Of: "value", AtLeast: 2_000_000}},
	"C2":  {{Of: "value", AtLeast: 20_000}, {Of: "p99_ms", AtMost: 20}},
	"D1":  {{Of: "value", AtLeast: 300_000}},
	"D6":  {{Of: "ratio", AtLeast: 0.9}},
	"D4":  {{Of: "value", AtLeast: 100_000}},
	"L1":  {{Of: "value", AtLeast: 355}},
	"L6":  {{Of: "value", AtLeast: 355}},
	"L7":  {{Of: "value", AtLeast: 355}},
	"L9":  {{Of: "p99_ms", AtMost: 50}, {Of: "ratio", AtLeast: 0.95}},
	"L9b": {{Of: "value", AtMost: 2000}},
	"L10": {{Of: "value", AtMost: 60}, {Of: "rss_mb", AtMost: 1024}},
	"F1":  {{Of: "ratio", AtLeast: 0.95}},
	"F1m": {{Of: "ratio", AtLeast: 0.95}},
	"H1":  {{Of: "value", AtMost: 50}},
	"H2":  {{Of: "value", AtMost: 50}},
	"X1":  {{Of: "ratio", AtLeast: 0.8}},
	"X2":  {{Of: "ratio", AtLeast: 0.8}},
	"X3":  {{Of: "ratio", AtLeast: 0.8}},
	"X4":  {{Of: "ratio", AtLeast: 0.8}},
	"W1":  {{Of: "value", AtMost: 300}},
	"RB1": {{Of: "value", AtLeast: 2000}},
	"J1":  {{Of: "value", AtLeast: 29_924}},
	"J2":  {{Of: "value", AtLeast: 65}},
	"J3":  {{Of: "value", AtLeast: 10_000}},
	"J4":  {{Of: "p99_ms", AtMost: 5}, {Of: "rss_mb", AtMost: 1024}},
	"J5":  {{Of: "p99_ms", AtMost: 50}},
	"J6":  {{Of: "value", AtLeast: 200_000}, {Of: "ratio", AtLeast: 0.5}, {Of: "p99_ms", AtMost: 20}},
	"R1":  {{Of: "value", AtMost: 4000}, {Of: "rss_mb", AtMost: 80}},
	"K1":  {{Of: "ratio", AtLeast: 0.7}},
	"K2":  {{Of: "ratio", AtLeast: 0.9}},
	"K3":  {{Of: "ratio", AtLeast: 0.95}, {Of: "refused", AtMost: 0.001}},
	"K4":  {{Of: "ratio", AtLeast: 0.9}},
	"T1":  {{Of: "value", AtLeast: 300_000}, {Of: "ratio", AtLeast: 0.5}},
	"T2":  {{Of: "p99_ms", AtMost: 1}},
	"T3":  {{Of: "value", AtLeast: 99.95}},
	"T4":  {{Of: "ratio", AtMost: 1.05}, {Of: "growth_mb", AtMost: 200}},
	"T5":  {{Of: "value", AtLeast: 100_000}},
	"B1":  {{Of: "value", AtLeast: 2e6}},
	"B1j": {{Of: "value", AtLeast: 400e3}},
	"B2":  {{Of: "value", AtLeast: 1e9}},
	"B3":  {{Of: "value", AtLeast: 1e9}},
	"B4":  {{Of: "value", AtLeast: 200e3}},
	"B5":  {{Of: "value", AtLeast: 100e3}},
	"B6":  {{Of: "value", AtLeast: 20e3}},
	"B7":  {{Of: "value", AtLeast: 1e6}, {Of: "p99_ms", AtMost: 5}},
	"B8":  {{Of: "value", AtMost: 2000}},
	"B9":  {{Of: "value", AtMost: 64}},
	"B10": {{Of: "value", AtMost: 1536}},
}

// goalsOfTenMillion are those of the suite matching at scale 10.
var goalsOfTenMillion = map[string][]report.Goal{
	"B1":  {{Of: "value", AtLeast: 1e6}},
	"B1j": {{Of: "value", AtLeast: 300e3}},
	"B2":  {{Of: "value", AtLeast: 1e9}},
	"B3":  {{Of: "value", AtLeast: 1e9}},
	"B4":  {{Of: "value", AtLeast: 200e3}},
	"B5":  {{Of: "value", AtLeast: 30e3}},
	"B7":  {{Of: "value", AtLeast: 1e6}, {Of: "p99_ms", AtMost: 5}},
	"B8":  {{Of: "value", AtMost: 20_000}},
	"B9":  {{Of: "value", AtMost: 64}},
}

// goalsAt returns the goals of an experiment at a scale. There are none for other
// sizes than those of the plan.
func goalsAt(id string, scale float64) []report.Goal {
	switch scale {
	case 1:
		return goals[id]
	case 10:
		return goalsOfTenMillion[id]
	}
	return nil
}
