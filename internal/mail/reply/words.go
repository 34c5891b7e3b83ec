package reply

import (
	"fmt"
	"strings"

	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// Fits describes the replies that the rule matches.
func (r *Rule) Fits() string {
	var parts []string
	add := func(name string, list []string) {
		if len(list) > 0 {
			parts = append(parts, strings.TrimSpace(name+" "+strings.Join(list, ", ")))
		}
	}
	if r.Driver != "" {
		parts = append(parts, r.Driver)
	}
	add("", texts(r.Codes))
	add("", texts(r.Enhanced))
	var said []string
	for _, v := range r.Verdicts {
		for name, of := range verdicts {
			if of == v {
				said = append(said, name)
			}
		}
	}
	add("", said)
	add("to", r.To)
	if r.Says != nil {
		add("says", []string{strings.Join(r.Says, " | ")})
	}
	if r.Text != nil {
		add("text", []string{strings.TrimPrefix(r.Text.String(), "(?i)")})
	}
	return strings.Join(parts, "; ")
}

func texts[T fmt.Stringer](list []T) []string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = v.String()
	}
	return all
}

// Means describes what the rule does with a reply.
func (r *Rule) Means() string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if r.Class != "" {
		add("%s", r.Class)
	}
	if r.Then != ThenAsSaid {
		add("%s", r.Then)
	}
	if r.After > 0 {
		add("after %v", r.After)
	}
	if r.Suspend > 0 {
		add("suspend for %v", r.Suspend)
	}
	if r.Slow {
		add("slow down")
	}
	return strings.Join(parts, ", ")
}

// VerdictOf returns the verdict of a driver for a reply that consists only of the code.
func VerdictOf(driverName string, code int) driver.Verdict {
	switch {
	case code/100 == 2:
		return driver.Accepted
	case driverName == "webhook" && (code == 408 || code == 425 || code == 429 || code/100 == 5),
		driverName != "webhook" && code/100 == 4:
		return driver.Temporary
	}
	return driver.Permanent
}
