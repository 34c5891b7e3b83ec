package expr

import (
	"fmt"
	"time"
	_ "time/tzdata"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// timePartRoot is a part of one of the event's times in a constant zone. cel-go reads the zone's
// data for each call, which takes longer than the rest of a match.
type timePartRoot struct {
	name string
	of   Source
	at   *Path // to the time; set when a path is made of the root
	part func(time.Time) int
	zone *time.Location
}

func (c *timePartRoot) Key() string { return fmt.Sprintf("%s %s(%s)", c.of.Key(), c.name, c.zone) }

func (c *timePartRoot) Load(f *Frame) (any, bool) {
	t, ok := f.value(c.at).value.(time.Time)
	if !ok {
		return nil, false
	}
	return int64(c.part(t.In(c.zone))), true
}

// timePartRoot reports whether e reads a time of the event in a constant zone.
func (b *Builder) timePartRoot(e celast.Expr) (*timePartRoot, bool) {
	part, zone, ok := lang.TimePartInZone(e)
	if !ok {
		return nil, false
	}
	location, err := lang.LoadZone(zone)
	of, isSource := b.Source(e.AsCall().Target())
	return &timePartRoot{name: e.AsCall().FunctionName(), of: of, part: part, zone: location}, err == nil && isSource
}

// timePartOperand is a part of one of the event's times in a zone that is a param.
type timePartOperand struct {
	at   Field
	part func(time.Time) int
	zone TextParam
}

func (x *timePartOperand) Load(f *Frame) (any, bool) {
	v, _ := x.at.Load(f)
	t, ok := v.(time.Time)
	zone := f.zone(f.text(x.zone.column).Text)
	if !ok || zone == nil {
		return nil, false
	}
	return int64(x.part(t.In(zone))), true
}

func (x *timePartOperand) Folded(*Frame) (string, bool) { return "", false }

// timePartOperand reports whether e reads a time of the event in a zone that is a param.
func (b *Builder) timePartOperand(e celast.Expr) (*timePartOperand, bool) {
	part, arg, ok := lang.TimePart(e)
	if !ok {
		return nil, false
	}
	zone, ok1 := b.Param(arg)
	of, ok2 := b.Source(e.AsCall().Target())
	if !ok1 || !ok2 || zone.Kind != lang.KindString {
		return nil, false
	}
	return &timePartOperand{Field{b.Path(of)}, part, TextParam{zone.Column}}, true
}

// maxZones is the number of zones that a frame keeps, which is more than exist.
const maxZones = 1024

// zone loads the zone with a name; nil if there is none.
func (f *Frame) zone(name string) *time.Location {
	zone, known := f.zones[name]
	if !known {
		if zone, _ = lang.LoadZone(name); f.zones == nil || len(f.zones) == maxZones {
			f.zones = map[string]*time.Location{}
		}
		f.zones[name] = zone
	}
	return zone
}
