package report

import (
	_ "embed"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed report.html
var reportHTML string

// WriteHTML writes one HTML page without external files: a table of the latest record of
// each experiment and set of parameters, and plots.
func WriteHTML(w io.Writer, all []Record) error {
	page, err := template.New("report").Funcs(template.FuncMap{"figure": Figure, "dash": orDash}).Parse(reportHTML)
	if err != nil {
		return err
	}
	return page.Execute(w, newReport(all))
}

type report struct {
	Machines  []string
	Rows      []row
	Published plot
	Ratios    plot
	Points    []titled
	Stages    []titled
	Over      []titledCurves
}

type row struct {
	*Record
	How   string // params, for people
	Times string
	On    string
}

// A plot has horizontal bars. Lengths are in SVG units, at most barWidth.
type plot struct {
	Bars   []plotBar
	Height int
}

type plotBar struct {
	Label, Text string
	Y           int
	Length      float64
	Class       string
}

type titled struct {
	Title string
	plot
}

const (
	barWidth  = 520
	barHeight = 22
)

func newReport(all []Record) report {
	var out report
	for _, r := range latest(all) {
		out.Rows = append(out.Rows, row{&r, ParamsText(r.Params), strings.TrimPrefix(times(&r), ", "), r.At.Format(time.DateOnly)})
		if !slices.Contains(out.Machines, r.Machine) {
			out.Machines = append(out.Machines, r.Machine)
		}
	}
	out.Published, out.Ratios = publishedPlot(out.Rows), ratioPlot(out.Rows)
	for _, r := range out.Rows {
		if p := pointsPlot(r.Record); len(p.Bars) > 0 {
			out.Points = append(out.Points, titled{Label(r.Record) + ", " + r.Unit, p})
		}
		if p := stagesPlot(r.Record); len(p.Bars) > 0 {
			out.Stages = append(out.Stages, titled{Label(r.Record), p})
		}
		if len(r.Over) > 0 {
			out.Over = append(out.Over, titledCurves{Label(r.Record), newCurves(r.Over)})
		}
	}
	return out
}

// latest keeps the last record of each experiment and set of parameters, in the order in
// which they first occur.
func latest(all []Record) []Record {
	var keys []string
	last := map[string]Record{}
	for _, r := range all {
		key := strings.Join([]string{r.ID, r.Durability, r.Machine, ParamsText(r.Params)}, "\x00")
		if _, seen := last[key]; !seen {
			keys = append(keys, key)
		}
		last[key] = r
	}
	out := make([]Record, len(keys))
	for i, key := range keys {
		out[i] = last[key]
	}
	return out
}

// ParamsText writes the parameters of a record in alphabetical order.
func ParamsText(params map[string]any) string {
	var names []string
	for name := range params {
		if name != "seed" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = name + " " + text(params[name])
	}
	return strings.Join(names, ", ")
}

func text(v any) string {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) {
			return Thousands(int64(v))
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case int:
		return Thousands(int64(v))
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	}
	return "?"
}

// Label returns the name of a record in a plot.
func Label(r *Record) string {
	out := r.ID
	if r.Durability != InMemory {
		out += " " + r.Durability
	}
	if s, _ := r.Params["sink"].(string); s != "" && s != "builtin" {
		out += ", " + s
	}
	if r.OnPostgreSQL() {
		out += ", PostgreSQL"
	}
	if on, _ := r.Params["tls"].(bool); on {
		out += ", STARTTLS"
	}
	if scale, ok := r.Params["scale"].(float64); ok && scale != 1 {
		out += ", scale " + text(scale)
	}
	return out
}

func (p *plot) add(label, text, class string, length float64) {
	p.Bars = append(p.Bars, plotBar{label, text, p.Height, max(1, min(barWidth, length)), class})
	p.Height += barHeight
}

// publishedPlot shows published and measured values on a logarithmic scale.
func publishedPlot(rows []row) plot {
	var p plot
	least, most := math.Inf(1), 0.0
	for _, r := range rows {
		if r.Published != nil && r.Published.Value > 0 && r.Value > 0 {
			least, most = min(least, r.Published.Value, r.Value), max(most, r.Published.Value, r.Value)
		}
	}
	low, high := math.Floor(math.Log10(least)), math.Ceil(math.Log10(most)+1e-9)
	length := func(v float64) float64 { return barWidth * (math.Log10(v) - low) / max(1, high-low) }
	for _, r := range rows {
		if r.Published != nil && r.Published.Value > 0 && r.Value > 0 {
			p.add(Label(r.Record), Figure(r.Value)+" "+r.Unit, "ours", length(r.Value))
			p.add("published", r.Published.Text, "theirs", length(r.Published.Value))
			p.Height += barHeight / 3
		}
	}
	return p
}

func ratioPlot(rows []row) plot {
	var p plot
	for _, r := range rows {
		if r.Ratio > 0 {
			p.add(Label(r.Record), Figure(r.Ratio), "ours", barWidth*r.Ratio)
		}
	}
	return p
}

// pointsPlot shows each point and its limit on a linear scale.
func pointsPlot(r *Record) plot {
	var p plot
	most := 0.0
	for _, x := range r.Points {
		most = max(most, x.Value, x.Limit)
	}
	for _, x := range r.Points {
		p.add(x.At, Figure(x.Value), "ours", barWidth*x.Value/max(most, 1e-9))
		if x.Limit > 0 {
			p.add("limit", Figure(x.Limit), "theirs", barWidth*x.Limit/max(most, 1e-9))
			p.Height += barHeight / 3
		}
	}
	return p
}

func stagesPlot(r *Record) plot {
	var p plot
	most := 0.0
	for _, s := range r.Stages {
		most = max(most, s.Millis)
	}
	for _, s := range r.Stages {
		p.add(s.Name, Figure(s.Millis)+" ms", "ours", barWidth*s.Millis/max(most, 1e-9))
	}
	return p
}

// End is the position of the text after a bar.
func (b plotBar) End() float64 { return 240 + b.Length + 8 }
