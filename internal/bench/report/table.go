package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Figure formats a number: 43,210 or 99.95 or 12.3 or 0.045.
func Figure(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return Thousands(int64(math.Round(v)))
	case a > 99: // a percentage close to 100 is told apart from it
		return strconv.FormatFloat(v, 'f', 2, 64)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

func Thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// orDash formats a number, or a dash if it was not measured.
func orDash(v float64) string {
	if v == 0 {
		return "-"
	}
	return Figure(v)
}

// WriteRecord prints all of one record.
func WriteRecord(w io.Writer, r *Record) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	row(r.ID, "%s %s", Figure(r.Value), r.Unit)
	if r.Published != nil {
		row("published", "%s%s", r.Published.Text, times(r))
	}
	if r.Limit > 0 {
		row("limit", "%s %s, ratio %s", Figure(r.Limit), r.Unit, Figure(r.Ratio))
	}
	if r.P99Millis > 0 {
		row("latency", "p50 %s ms, p99 %s ms", Figure(r.P50Millis), Figure(r.P99Millis))
	}
	if r.CPUSeconds > 0 || r.RSSMiB > 0 {
		process := "server"
		if r.Durability == InMemory {
			process = "process"
		}
		row(process, "%.2f s CPU, %s MiB at most", r.CPUSeconds, orDash(r.RSSMiB))
	}
	if len(r.Goals) > 0 {
		row("goal", "%s", judgeGoals(r))
	}
	row("other tenants", "%.1f %% of the CPU time", 100*r.Steal)
	row("lost", "%d", r.Lost)
	row("duplicates", "%d", r.Duplicates)
	for _, p := range r.Points {
		text := Figure(p.Value) + " " + r.Unit
		if p.Limit > 0 {
			text += fmt.Sprintf(", limit %s, ratio %s", Figure(p.Limit), Figure(p.Ratio))
		}
		if p.P99Millis > 0 {
			text += fmt.Sprintf(", p50 %s ms, p99 %s ms", Figure(p.P50Millis), Figure(p.P99Millis))
		}
		row("  "+p.At, "%s", text)
	}
	for _, s := range r.Stages {
		row("  "+s.Name, "%s ms", Figure(s.Millis))
	}
	for _, n := range r.Notes {
		row("", "%s", n)
	}
	t.Flush()
}

// times compares the value with the published one.
func times(r *Record) string {
	if r.Published == nil || r.Published.Value <= 0 || r.Value <= 0 {
		return ""
	}
	return fmt.Sprintf(", %s times that", Figure(r.Value/r.Published.Value))
}

// WriteTable prints one line for each record.
func WriteTable(w io.Writer, records []Record) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, strings.Join([]string{"id", "value", "unit", "limit", "ratio", "p50 ms", "p99 ms", "RSS MiB", "lost", "twice", "published"}, "\t")+"\t")
	for i := range records {
		r := &records[i]
		published := "-"
		if r.Published != nil {
			published = r.Published.Text
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", r.ID, Figure(r.Value), r.Unit, orDash(r.Limit), orDash(r.Ratio),
			orDash(r.P50Millis), orDash(r.P99Millis), orDash(r.RSSMiB), r.Lost, r.Duplicates, published)
	}
	t.Flush()
}
