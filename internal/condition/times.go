package condition

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for machines that have no data of time zones

	celast "cel.dev/cel-go/common/ast"
)

// timeParts are CEL's functions that read a time on the clock of a zone. Months and
// the days of a year begin at 0, as do weekdays, with Sunday.
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

// timePartRoot is a part of one of the event's times, in a zone. cel-go reads the zone's
// data each time, which takes longer than all the rest of a match.
type timePartRoot struct {
	name string
	of   source
	at   *path // to the time, once there is a path to the clock
	part func(time.Time) int
	zone *time.Location
}

func (c *timePartRoot) key() string { return fmt.Sprintf("%s %s(%s)", c.of.key(), c.name, c.zone) }

func (c *timePartRoot) load(f *frame) (any, bool) {
	t, ok := f.value(c.at).value.(time.Time)
	if !ok {
		return nil, false
	}
	return int64(c.part(t.In(c.zone))), true
}

// timePartRoot reports whether e reads a time of the event in a constant zone.
func (b *builder) timePartRoot(e celast.Expr) (*timePartRoot, bool) {
	part, zone, ok := timePartInZone(e)
	if !ok {
		return nil, false
	}
	location, err := loadZone(zone)
	of, isSource := b.source(e.AsCall().Target())
	return &timePartRoot{name: e.AsCall().FunctionName(), of: of, part: part, zone: location}, err == nil && isSource
}

// timePartOperand is a part of one of the event's times in a zone that is a param.
type timePartOperand struct {
	at   field
	part func(time.Time) int
	zone textParam
}

func (x *timePartOperand) load(f *frame) (any, bool) {
	v, _ := x.at.load(f)
	t, ok := v.(time.Time)
	zone := f.zone(f.text(x.zone.column).text)
	if !ok || zone == nil {
		return nil, false
	}
	return int64(x.part(t.In(zone))), true
}

func (x *timePartOperand) folded(*frame) (string, bool) { return "", false }

// timePartOperand reports whether e reads a time of the event in the zone of the subscription.
func (b *builder) timePartOperand(e celast.Expr) (*timePartOperand, bool) {
	part, arg, ok := timePart(e)
	if !ok {
		return nil, false
	}
	zone, ok1 := b.param(arg)
	of, ok2 := b.source(e.AsCall().Target())
	if !ok1 || !ok2 || zone.kind != kindString {
		return nil, false
	}
	return &timePartOperand{field{b.path(of)}, part, textParam{zone.column}}, true
}

// maxZones is how many zones a frame keeps: all that there are, and some that are none.
const maxZones = 1024

// zone reads the name of a zone once; nil where there is none.
func (f *frame) zone(name string) *time.Location {
	zone, known := f.zones[name]
	if !known {
		if zone, _ = loadZone(name); f.zones == nil || len(f.zones) == maxZones {
			f.zones = map[string]*time.Location{}
		}
		f.zones[name] = zone
	}
	return zone
}

// timePart takes t.part(zone) apart.
func timePart(e celast.Expr) (part func(time.Time) int, zone celast.Expr, ok bool) {
	if e.Kind() != celast.CallKind || !e.AsCall().IsMemberFunction() || len(e.AsCall().Args()) != 1 {
		return nil, nil, false
	}
	part = timeParts[e.AsCall().FunctionName()]
	return part, e.AsCall().Args()[0], part != nil
}

// timePartInZone takes t.part('zone') apart.
func timePartInZone(e celast.Expr) (part func(time.Time) int, zone string, ok bool) {
	part, arg, ok := timePart(e)
	if !ok {
		return nil, "", false
	}
	v, _ := literal(arg)
	zone, ok = v.(string)
	return part, zone, ok
}

// loadZone reads the name of a zone, or its distance from UTC, as CEL does.
func loadZone(text string) (*time.Location, error) {
	hours, minutes, isDistance := strings.Cut(text, ":")
	if !isDistance {
		return time.LoadLocation(text) // nil with an error
	}
	h, err := strconv.Atoi(hours)
	if err != nil || h < -23 || h > 23 {
		return nil, fmt.Errorf("the hours of %q are not -23 to 23", text)
	}
	m, err := strconv.Atoi(minutes)
	if err != nil || m < 0 || m > 59 {
		return nil, fmt.Errorf("the minutes of %q are not 0 to 59", text)
	}
	if text[0] == '-' {
		m = -m
	}
	return time.FixedZone(text, (h*60+m)*60), nil
}

// timeZone refuses a constant zone that there is not.
func (c *checker) timeZone(e celast.Expr) {
	_, zone, ok := timePartInZone(e)
	if !ok {
		return
	}
	if _, err := loadZone(zone); err != nil || zone == "Local" {
		c.refuse(e.AsCall().Args()[0], "write a name such as Europe/Berlin, or an offset such as +02:00", "there is no time zone %q", zone)
	}
}
