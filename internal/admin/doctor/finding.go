package doctor

import (
	"fmt"
	"slices"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Warning Level = "warning" // it works, and may not for long, or not as well as it could
	Wrong   Level = "wrong"   // it will not work
)

// A Finding is what one look has shown.
type Finding struct {
	Check string `json:"check"` // what was looked at: configuration, listen, data, clock, ...
	Level Level  `json:"level"`
	What  string `json:"what"`
	Mend  string `json:"mend,omitempty"` // what to do; "" of what is ok
}

// A Report is all findings, in the order in which they were looked for.
type Report struct {
	Findings []Finding `json:"findings"`
	Wrong    int       `json:"wrong"`
	Warnings int       `json:"warnings"`
}

func (r *Report) add(check string, level Level, mend, format string, args ...any) {
	switch level {
	case Wrong:
		r.Wrong++
	case Warning:
		r.Warnings++
	}
	r.Findings = append(r.Findings, Finding{Check: check, Level: level, What: fmt.Sprintf(format, args...), Mend: mend})
}

// merge adds the findings of another report that are not there yet.
func (r *Report) merge(of *Report) {
	for _, f := range of.Findings {
		if !slices.Contains(r.Findings, f) {
			r.add(f.Check, f.Level, f.Mend, "%s", f.What)
		}
	}
}

func (r *Report) ok(check, format string, args ...any) { r.add(check, OK, "", format, args...) }
func (r *Report) warn(check, mend, format string, args ...any) {
	r.add(check, Warning, mend, format, args...)
}
func (r *Report) wrong(check, mend, format string, args ...any) {
	r.add(check, Wrong, mend, format, args...)
}
