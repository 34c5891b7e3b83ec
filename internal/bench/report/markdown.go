package report

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A measurement has all records of one experiment that one call of bench made with the
// same parameters.
type measurement struct {
	runs []Record
	mid  Record // the median of each figure
}

// measurements groups records by call and parameters, the newest call first.
func measurements(all []Record) []measurement {
	var out []measurement
	at := map[string]int{}
	for _, r := range all {
		call := r.Call.Format(time.RFC3339Nano)
		if r.Call.IsZero() { // older records do not say which call they are of
			call = r.At.Format(time.DateOnly)
		}
		key := strings.Join([]string{r.ID, r.Version, r.Durability, r.Machine, ParamsText(r.Params), call}, "\x00")
		i, known := at[key]
		if !known {
			i = len(out)
			at[key] = i
			out = append(out, measurement{})
		}
		out[i].runs = append(out[i].runs, r)
	}
	for i := range out {
		out[i].mid = middle(out[i].runs)
	}
	slices.SortStableFunc(out, func(a, b measurement) int { return b.began().Compare(a.began()) })
	return out
}

// began is when the call began that a measurement is of.
func (m *measurement) began() time.Time {
	if m.mid.Call.IsZero() {
		return m.mid.At.Truncate(24 * time.Hour)
	}
	return m.mid.Call
}

// middle returns a record with the median of each figure, the most memory, and the
// highest counts of lost and duplicated messages.
func middle(runs []Record) Record {
	out := runs[0]
	of := func(figure func(r *Record) float64) float64 {
		all := make([]float64, len(runs))
		for i := range runs {
			all[i] = figure(&runs[i])
		}
		return MedianOf(all)
	}
	out.Value = of(func(r *Record) float64 { return r.Value })
	out.Limit = of(func(r *Record) float64 { return r.Limit })
	out.Ratio = of(func(r *Record) float64 { return r.Ratio })
	out.P50Millis = of(func(r *Record) float64 { return r.P50Millis })
	out.P99Millis = of(func(r *Record) float64 { return r.P99Millis })
	out.CPUMicros = of(func(r *Record) float64 { return r.CPUMicros })
	out.CPUSeconds = of(func(r *Record) float64 { return r.CPUSeconds })
	for i := range runs {
		out.RSSMiB = max(out.RSSMiB, runs[i].RSSMiB)
		out.Lost, out.Duplicates = max(out.Lost, runs[i].Lost), max(out.Duplicates, runs[i].Duplicates)
	}
	return out
}

// MedianOf returns the median of values. Of an even number it is the mean of the two
// values in the middle, and of none it is 0.
func MedianOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	half := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[half-1] + sorted[half]) / 2
	}
	return sorted[half]
}

// spreadOf returns the greatest less the least value, as a share of the median.
func spreadOf(values []float64) float64 {
	if m := MedianOf(values); m > 0 {
		return (slices.Max(values) - slices.Min(values)) / m
	}
	return 0
}

// leastRuns is the number of runs that a spread needs.
const leastRuns = 3

// spread writes the spread of values for people.
func spread(values []float64) string {
	if len(values) < leastRuns {
		return "only " + runsOf(len(values))
	}
	return fmt.Sprintf("%.0f %%", 100*spreadOf(values))
}

func runsOf(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

// shares writes a share of the CPU time in the runs.
func shares(runs []Record, of func(r *Record) float64) string {
	least, most := of(&runs[0]), of(&runs[0])
	for i := range runs {
		least, most = min(least, of(&runs[i])), max(most, of(&runs[i]))
	}
	from, to := fmt.Sprintf("%.0f", 100*least), fmt.Sprintf("%.0f", 100*most)
	if from == to {
		return to + " %"
	}
	return from + " to " + to + " %"
}

// variation describes how the parameters of a record differ from the defaults.
func variation(r *Record) string {
	var all []string
	if r.Durability != "fsync" && r.Durability != InMemory {
		all = append(all, r.Durability)
	}
	if s, _ := r.Params["sink"].(string); s != "" && s != "builtin" {
		all = append(all, "sink "+s)
	}
	if db, _ := r.Params["db"].(string); db != "" {
		all = append(all, db)
	}
	if on, _ := r.Params["tls"].(bool); on {
		all = append(all, "STARTTLS")
	}
	if scale, ok := r.Params["scale"].(float64); ok && scale != 1 {
		all = append(all, "scale "+text(scale))
	}
	return strings.Join(all, ", ")
}

// A Catalog says which table an experiment belongs to and what it shows.
type Catalog struct {
	Tables   []string // names, in order
	TableOf  func(id string) string
	Describe func(id string) string
}

// WriteMarkdown writes one table for each suite, the newest run first, with the
// median and the spread of the runs of a call. An experiment of several suites is in
// the first of them.
func (c *Catalog) WriteMarkdown(w io.Writer, all []Record) error {
	var b strings.Builder
	machines := []string{}
	for i := range all {
		if !slices.Contains(machines, all[i].Machine) {
			machines = append(machines, all[i].Machine)
		}
	}
	groups := measurements(all)
	for _, name := range c.Tables {
		own := slices.DeleteFunc(slices.Clone(groups), func(m measurement) bool { return c.TableOf(m.mid.ID) != name })
		if len(own) > 0 {
			c.writeTable(&b, name, own, machines)
		}
	}
	if b.Len() == 0 {
		b.WriteString("There are no records of this kind yet.\n")
	}
	for i, m := range machines {
		if i == 0 {
			b.WriteString("Machines:\n\n")
		}
		fmt.Fprintf(&b, "- %c: %s\n", 'A'+i, m)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (c *Catalog) writeTable(b *strings.Builder, name string, all []measurement, machines []string) {
	fmt.Fprintf(b, "### Suite %s\n\n", name)
	b.WriteString("| measured | id | median | spread | limit | value/limit | p50, p99 ms | CPU us/item | MiB | lost, twice | other tenants | all others | goal |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var ids []string
	for i := range all {
		m := &all[i]
		r := &m.mid
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
		on := []string{fmt.Sprintf("%s, %c, %s", r.At.Format(time.DateOnly), 'A'+slices.Index(machines, r.Machine), runsOf(len(m.runs)))}
		if r.Version != "" {
			on = append(on, r.Version)
		}
		if v := variation(r); v != "" {
			on = append(on, v)
		}
		fmt.Fprintf(b, "| %s | %s | %s %s | %s | %s | %s | %s | %s | %s | %d, %d | %s | %s | %s |\n", strings.Join(on, ", "), r.ID, Figure(r.Value), r.Unit,
			spread(valuesOf(m.runs)), orDash(r.Limit), orDash(r.Ratio), latencies(r.P50Millis, r.P99Millis), orDash(r.CPUMicros), orDash(r.RSSMiB),
			r.Lost, r.Duplicates, shares(m.runs, func(r *Record) float64 { return r.Steal }), shares(m.runs, func(r *Record) float64 { return r.Others }), cmp.Or(judgeGoals(r), "-"))
		writePoints(b, m)
	}
	b.WriteString("\n")
	for _, id := range ids {
		fmt.Fprintf(b, "- %s: %s\n", id, c.Describe(id))
	}
	b.WriteString("\n")
}

// writePoints writes a row for each point of what was varied.
func writePoints(b *strings.Builder, m *measurement) {
	for k, p := range m.mid.Points {
		var values, limits, ratios, p50, p99 []float64
		for i := range m.runs {
			if k < len(m.runs[i].Points) && m.runs[i].Points[k].At == p.At {
				x := m.runs[i].Points[k]
				values, limits, ratios = append(values, x.Value), append(limits, x.Limit), append(ratios, x.Ratio)
				p50, p99 = append(p50, x.P50Millis), append(p99, x.P99Millis)
			}
		}
		fmt.Fprintf(b, "| | %s: %s | %s | %s | %s | %s | %s | | | | | | |\n", m.mid.ID, p.At, Figure(MedianOf(values)), spread(values),
			orDash(MedianOf(limits)), orDash(MedianOf(ratios)), latencies(MedianOf(p50), MedianOf(p99)))
	}
}

func valuesOf(runs []Record) []float64 {
	all := make([]float64, len(runs))
	for i := range runs {
		all[i] = runs[i].Value
	}
	return all
}

func latencies(p50, p99 float64) string {
	if p99 == 0 {
		return "-"
	}
	return Figure(p50) + ", " + Figure(p99)
}

// The lines of a page that enclose the tables.
const (
	tablesBegin = "<!-- The tables up to the next mark are made by make measure. -->"
	tablesEnd   = "<!-- End of the tables. -->"
)

// UpdatePage writes the tables into a Markdown page, in place of those that stand
// between its two marks.
func (c *Catalog) UpdatePage(path string, all []Record) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := c.withTables(string(page), all)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644) //nolint:gosec // a page of the documentation is for everybody
}

func (c *Catalog) withTables(page string, all []Record) (string, error) {
	before, rest, found := strings.Cut(page, tablesBegin+"\n")
	_, after, closed := strings.Cut(rest, tablesEnd)
	if !found || !closed {
		return "", fmt.Errorf("the page does not contain both lines %q and %q: add them where the tables belong", tablesBegin, tablesEnd)
	}
	var tables strings.Builder
	if err := c.WriteMarkdown(&tables, all); err != nil {
		return "", err
	}
	return before + tablesBegin + "\n\n" + strings.TrimSpace(tables.String()) + "\n\n" + tablesEnd + after, nil
}
