package report

import (
	"fmt"
	"strings"
)

// A Goal is a bound that a figure of a run in full size should reach.
type Goal struct {
	Of      string  `json:"of"` // value, ratio, p99_ms, rss_mb, growth_mb or refused
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
}

// figureOf returns the figure of a record that a goal is about.
func (g Goal) figureOf(r *Record) float64 {
	switch g.Of {
	case "ratio":
		return r.Ratio
	case "p99_ms":
		return r.P99Millis
	case "rss_mb":
		return r.RSSMiB
	case "growth_mb":
		return r.GrowthMiB
	case "refused":
		return r.Refused
	}
	return r.Value
}

// missed tells whether a record does not reach the goal.
func (g Goal) missed(r *Record) bool {
	v := g.figureOf(r)
	return g.AtLeast > 0 && v < g.AtLeast || g.AtMost > 0 && v > g.AtMost
}

// text writes the goal for people; unit is that of the value.
func (g Goal) text(unit string) string {
	sign, bound := "≥", g.AtLeast
	if g.AtMost > 0 {
		sign, bound = "≤", g.AtMost
	}
	switch g.Of {
	case "ratio":
		return fmt.Sprintf("value/limit %s %s", sign, Figure(bound))
	case "p99_ms":
		return fmt.Sprintf("p99 %s %s ms", sign, Figure(bound))
	case "rss_mb":
		return fmt.Sprintf("memory %s %s MiB", sign, Figure(bound))
	case "growth_mb":
		return fmt.Sprintf("growth %s %s MiB/day", sign, Figure(bound))
	case "refused":
		return fmt.Sprintf("refused %s %s %%", sign, Figure(100*bound))
	}
	return fmt.Sprintf("%s %s %s", sign, Figure(bound), unit)
}

// judgeGoals writes the goals of a record, those that are missed marked.
func judgeGoals(r *Record) string {
	all := make([]string, len(r.Goals))
	for i, g := range r.Goals {
		if all[i] = g.text(r.Unit); g.missed(r) {
			all[i] += " **missed**"
		}
	}
	return strings.Join(all, ", ")
}
