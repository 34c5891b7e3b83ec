package lang

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata"

	celast "cel.dev/cel-go/common/ast"
)

// timeParts are CEL's functions that read a part of a time in a time zone. Months, days of the year
// and weekdays begin at 0; weekday 0 is Sunday.
var timeParts = map[string]func(time.Time) int{
	"getFullYear":     time.Time.Year,
	"getMonth":        func(t time.Time) int { return int(t.Month()) - 1 },
	"getDate":         time.Time.Day,
	"getDayOfMonth":   func(t time.Time) int { return t.Day() - 1 },
	"getDayOfYear":    func(t time.Time) int { return t.YearDay() - 1 },
	"getDayOfWeek":    func(t time.Time) int { return int(t.Weekday()) },
	"getHours":        time.Time.Hour,
	"getMinutes":      time.Time.Minute,
	"getSeconds":      time.Time.Second,
	"getMilliseconds": func(t time.Time) int { return t.Nanosecond() / 1_000_000 },
}

// TimePart splits t.part(zone).
func TimePart(e celast.Expr) (part func(time.Time) int, zone celast.Expr, ok bool) {
	if e.Kind() != celast.CallKind || !e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) != 1 {
		return nil, nil, false
	}
	part = timeParts[e.AsCall().FunctionName()]
	return part, e.AsCall().Args()[0], part != nil
}

// TimePartInZone splits t.part('zone').
func TimePartInZone(e celast.Expr) (part func(time.Time) int, zone string, ok bool) {
	part, arg, ok := TimePart(e)
	if !ok {
		return nil, "", false
	}
	v, _ := Literal(arg)
	zone, ok = v.(string)
	return part, zone, ok
}

// LoadZone reads the name of a time zone or its offset from UTC, as CEL does.
func LoadZone(text string) (*time.Location, error) {
	hours, minutes, isDistance := strings.Cut(text, ":")
	if !isDistance {
		return time.LoadLocation(text) // nil if there is an error
	}
	h, err := strconv.Atoi(hours)
	if err != nil || h < -23 || h > 23 {
		return nil, fmt.Errorf("the hours of the offset %q must be from -23 to 23", text)
	}
	m, err := strconv.Atoi(minutes)
	if err != nil || m < 0 || m > 59 {
		return nil, fmt.Errorf("the minutes of the offset %q must be from 0 to 59", text)
	}
	if text[0] == '-' {
		m = -m
	}
	return time.FixedZone(text, (h*60+m)*60), nil
}

// timeZone refuses an unknown constant time zone.
func (c *checker) timeZone(e celast.Expr) {
	_, zone, ok := TimePartInZone(e)
	if !ok {
		return
	}
	if _, err := LoadZone(zone); err != nil || zone == "Local" {
		c.refuse(e.AsCall().Args()[0], "use a name such as Europe/Berlin, or an offset such as +02:00", "unknown time zone %q", zone)
	}
}
