package condition

import (
	"math"
	"slices"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// A grid leads from an event to the rows whose box contains it. A box has one to three axes, such
// as ranges of numbers or the area around a place.
//
// The grid has levels. On each level the cells have one width per axis, a power of two. A row is in
// one cell, that of its low corner, on the level with the smallest cells that are wider than its
// box. Therefore, its box reaches at most into the next cell. An event visits, on each level that has rows,
// its own cell and the previous one along each axis. The grid is never rebuilt.
//
// The key of a bucket is a hash of the cell, so that rows in it are candidates.
type grid struct {
	gridSpace
	levels []levelCount
}

// A gridSpace maps rows to boxes and events to points.
type gridSpace interface {
	axes() int
	// box returns the box of a row; false if no event can be in it.
	box(p *expr.ParamPage, row int) (box, bool)
	// point returns the point of the event; false if it is in no box.
	point(f *expr.Frame) ([maxAxes]float64, bool)
}

const maxAxes = 3

type box struct{ low, high [maxAxes]float64 }

// A level is the binary logarithm of the width of a cell along each axis.
type level [maxAxes]int16

type levelCount struct {
	level
	rows int
}

// pointLevel is the level of rows without width: the cell is the number itself.
const pointLevel = math.MinInt16

// All wider cells than maxLevel are on one level, and none are narrower than minLevel. An event
// visits every level that has rows, and two axes multiply their levels.
const (
	minLevel = -32
	maxLevel = 64
	topLevel = 1024 // any range of doubles
)

// levelOf returns the level with the smallest cells that are wider than b.
func levelOf(b *box, axes int) (l level) {
	for i := range axes {
		switch width := b.high[i] - b.low[i]; {
		case width == 0:
			l[i] = pointLevel
		case width >= 1<<maxLevel: // possibly infinite, between two very large numbers
			l[i] = topLevel
		default:
			_, exponent := math.Frexp(width)
			l[i] = int16(max(exponent, minLevel))
		}
	}
	return l
}

// cell returns the cell that contains x on an axis.
func (l level) cell(axis int, x float64) float64 {
	if l[axis] == pointLevel {
		return x + 0 // -0 becomes 0
	}
	return math.Floor(math.Ldexp(x, -int(l[axis]))) + 0
}

// key combines the key of the equalities with a cell. It mixes base by itself first, because base
// may be as small a number as a level.
func (l level) key(base uint64, cell *[maxAxes]float64, axes int) uint64 {
	key := hashMix(hashMix(0, base), uint64(uint16(l[0]))|uint64(uint16(l[1]))<<16|uint64(uint16(l[2]))<<32)
	for i := range axes {
		key = hashMix(key, math.Float64bits(cell[i]))
	}
	return key
}

// keyOf returns the key of the bucket for a row; not ok if the row is in none.
func (c *grid) keyOf(base uint64, p *expr.ParamPage, row int) (key uint64, on level, ok bool) {
	b, ok := c.box(p, row)
	if !ok {
		return 0, on, false
	}
	axes := c.axes()
	on = levelOf(&b, axes)
	corner := b.low
	for i := range axes {
		corner[i] = on.cell(i, corner[i])
	}
	if assert.Enabled {
		on.assertReached(&b, &corner, axes)
	}
	return on.key(base, &corner, axes), on, true
}

// countRows adds n to the number of rows on a level.
func (c *grid) countRows(on level, n int) {
	at := slices.IndexFunc(c.levels, func(u levelCount) bool { return u.level == on })
	if at < 0 {
		c.levels = append(c.levels, levelCount{on, n})
		return
	}
	if c.levels[at].rows += n; c.levels[at].rows == 0 {
		c.levels = slices.Delete(c.levels, at, at+1)
	}
}

// eachCellAt visits the keys of all cells with rows that may contain the event. It may visit a key
// twice.
func (c *grid) eachCellAt(f *expr.Frame, base uint64, visit func(key uint64)) {
	at, ok := c.point(f)
	if !ok {
		return
	}
	axes := c.axes()
	for i := range c.levels {
		on := c.levels[i].level
		var own, cell [maxAxes]float64
		points := 0 // bit set of axes on which rows have no width and so do not reach into another cell
		for axis := range axes {
			own[axis] = on.cell(axis, at[axis])
			if on[axis] == pointLevel {
				points |= 1 << axis
			}
		}
		for corner := range 1 << axes {
			if corner&points != 0 {
				continue
			}
			for axis := range axes {
				cell[axis] = own[axis] - float64(corner>>axis&1) + 0
			}
			visit(on.key(base, &cell, axes))
		}
	}
}

// circleSpace holds rows with circles on the Earth. Their boxes enclose the circle in
// three-dimensional space.
type circleSpace struct {
	lat, lon expr.Field
	center   [2]numberOrParam
	km       numberOrParam
}

// A numberOrParam is a param, or the same number for all rows.
type numberOrParam struct {
	column int // -1: the constant number
	number float64
}

func (n numberOrParam) value(p *expr.ParamPage, row int) float64 {
	if n.column < 0 {
		return n.number
	}
	return p.Numbers[n.column][row]
}

func (c *circleSpace) axes() int { return 3 }

// chordMargin exceeds the rounding errors of distances and boxes on a sphere of radius 1.
const chordMargin = 1e-12

func (c *circleSpace) box(p *expr.ParamPage, row int) (b box, ok bool) {
	center, km := lang.GeoPoint{Lat: c.center[0].value(p, row), Lon: c.center[1].value(p, row)}, c.km.value(p, row)
	if !center.IsValid() || !lang.IsDistance(km) {
		return b, false
	}
	chord := 2*math.Sin(min(km/(2*lang.EarthRadiusKm), math.Pi/2)) + chordMargin
	for i, x := range center.Vector() {
		b.low[i], b.high[i] = x-chord, x+chord
	}
	return b, true
}

func (c *circleSpace) point(f *expr.Frame) (at [maxAxes]float64, ok bool) {
	a, ok := expr.LoadGeoPoint(f, c.lat, c.lon)
	if !ok {
		return at, false
	}
	return a.Vector(), true
}

// circleSpaceOf recognises geo.within with one place of the event, and the other place and the
// distance of the row.
func circleSpaceOf(b *expr.Builder, e celast.Expr) (*circleSpace, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != lang.GeoWithin {
		return nil, false
	}
	args := e.AsCall().Args()
	for _, first := range [...]int{0, 2} { // the event's place
		lat, ok1 := b.Source(args[first])
		lon, ok2 := b.Source(args[first+1])
		centerLat, ok3 := numberOrParamOf(b, args[2-first])
		centerLon, ok4 := numberOrParamOf(b, args[3-first])
		km, ok5 := numberOrParamOf(b, args[4])
		if ok1 && ok2 && ok3 && ok4 && ok5 {
			return &circleSpace{expr.Field{Path: b.Path(lat)}, expr.Field{Path: b.Path(lon)}, [2]numberOrParam{centerLat, centerLon}, km}, true
		}
	}
	return nil, false
}

func numberOrParamOf(b *expr.Builder, e celast.Expr) (n numberOrParam, ok bool) {
	if p, isParam := b.Param(e); isParam {
		return numberOrParam{column: p.Column}, p.IsNumber()
	}
	v, _ := lang.Literal(e)
	n.column = -1
	n.number, ok = expr.ToFloat(v)
	return n, ok
}

// rangeSpace holds rows with a range of numbers for one or two fields.
type rangeSpace []fieldRange

type fieldRange struct {
	expr.Field
	low, high int // columns
}

// maxRanges limits the ranges of a rule that use a grid, because the levels in use multiply with
// each.
const maxRanges = 2

func (r rangeSpace) axes() int { return len(r) }

// box returns the closed box, even if the row excludes its ends.
func (r rangeSpace) box(p *expr.ParamPage, row int) (b box, ok bool) {
	for i := range r {
		b.low[i], b.high[i] = p.Numbers[r[i].low][row], p.Numbers[r[i].high][row]
		if !(b.low[i] <= b.high[i]) {
			return b, false
		}
	}
	return b, true
}

func (r rangeSpace) point(f *expr.Frame) (at [maxAxes]float64, ok bool) {
	for i := range r {
		v, _ := r[i].Load(f)
		if at[i], ok = expr.ToFloat(v); !ok || math.IsInf(at[i], 0) || math.IsNaN(at[i]) {
			return at, false
		}
	}
	return at, true
}

// rangeSpaceOf finds the fields with a lower and an upper bound among conjuncts. used are these
// conjuncts, by expression.
func rangeSpaceOf(b *expr.Builder, conjuncts []celast.Expr) (found rangeSpace, used map[int64]bool) {
	type sides struct{ lower, upper celast.Expr }
	var keys []string
	byField := map[string]*sides{}
	for _, conjunct := range conjuncts {
		one, ok := paramBoundOf(b, conjunct)
		if !ok {
			continue
		}
		key := one.Key()
		s := byField[key]
		if s == nil {
			s = &sides{}
			byField[key], keys = s, append(keys, key)
		}
		end := &s.upper
		if one.op.IsLowerBound() {
			end = &s.lower
		}
		if *end == nil {
			*end = conjunct
		}
	}
	used = map[int64]bool{}
	for _, key := range keys {
		s := byField[key]
		if s.lower == nil || s.upper == nil || len(found) == maxRanges {
			continue
		}
		lower, _ := paramBoundOf(b, s.lower)
		upper, _ := paramBoundOf(b, s.upper)
		found = append(found, fieldRange{expr.Field{Path: b.Path(lower.Source)}, lower.column, upper.column})
		used[s.lower.ID()], used[s.upper.ID()] = true, true
	}
	return found, used
}
