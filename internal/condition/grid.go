package condition

import (
	"math"
	"slices"

	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/assert"
	"fanfare.dev/fanfare/internal/condition/expr"
	"fanfare.dev/fanfare/internal/condition/lang"
)

// grid lead from an event to the rows in whose extent it lies: an extent is a box
// of one to three axes, such as a range of numbers or the surroundings of a place.
//
// There are levels of cells, and on each an axis is cut into cells of one width, a
// power of two. A row is filed once, in the cell of its low corner, on the level
// whose cells are just wider than it. So it reaches into the next cell at most, and
// an event looks, on each level that rows are on, into its own cell and the one
// before, along every axis. Nothing is ever rebuilt.
//
// Cells are keys of buckets, by a hash: what lies there is a candidate.
type grid struct {
	gridSpace
	levels []levelCount
}

// gridSpace tell where rows and events lie.
type gridSpace interface {
	axes() int
	// box is where a row lies; false where no event can be in it.
	box(p *expr.ParamPage, row int) (box, bool)
	// point is where the event is; false where it is in no row's box.
	point(f *expr.Frame) ([maxAxes]float64, bool)
}

const maxAxes = 3

type box struct{ low, high [maxAxes]float64 }

// A level is the binary logarithm of a cell's width along each axis.
type level [maxAxes]int16

type levelCount struct {
	level
	rows int
}

// pointLevel is that of rows without width: their cell is their number itself.
const pointLevel = math.MinInt16

// Wider cells than those of maxLevel are all of one level, and narrower ones than those
// of minLevel are none: an event looks on every level that is in use, and those of two
// axes are all pairs.
const (
	minLevel = -32
	maxLevel = 64
	topLevel = 1024 // everything between two doubles
)

// levelOf is the level with the smallest cells that are wider than b.
func levelOf(b *box, axes int) (l level) {
	for i := range axes {
		switch width := b.high[i] - b.low[i]; {
		case width == 0:
			l[i] = pointLevel
		case width >= 1<<maxLevel: // or infinite, of two numbers near the largest ones
			l[i] = topLevel
		default:
			_, exponent := math.Frexp(width)
			l[i] = int16(max(exponent, minLevel))
		}
	}
	return l
}

// cell is the one in which x lies on the axis.
func (l level) cell(axis int, x float64) float64 {
	if l[axis] == pointLevel {
		return x + 0 // -0 becomes 0
	}
	return math.Floor(math.Ldexp(x, -int(l[axis]))) + 0
}

// key joins the equalities' key with a cell. The key may be as small a number as a level: mixed
// by itself, two of both rarely come to the same.
func (l level) key(base uint64, cell *[maxAxes]float64, axes int) uint64 {
	key := hashMix(hashMix(0, base), uint64(uint16(l[0]))|uint64(uint16(l[1]))<<16|uint64(uint16(l[2]))<<32)
	for i := range axes {
		key = hashMix(key, math.Float64bits(cell[i]))
	}
	return key
}

// keyOf is the bucket of a row, if it is in one.
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

// countRows adds n rows to a level.
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

// eachCellAt visits the keys of all cells in which rows may lie that the event is in. The
// same key may come twice.
func (c *grid) eachCellAt(f *expr.Frame, base uint64, visit func(key uint64)) {
	at, ok := c.point(f)
	if !ok {
		return
	}
	axes := c.axes()
	for i := range c.levels {
		on := c.levels[i].level
		var own, cell [maxAxes]float64
		points := 0 // axes on which rows have no width: they reach into no other cell
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

// circleSpace are the extents of rows that want events near a place of their own. Their
// boxes are around the circle on the sphere, in space.
type circleSpace struct {
	lat, lon expr.Field
	center   [2]numberOrParam
	km       numberOrParam
}

// A rowNumber is a param, or the same number for all rows.
type numberOrParam struct {
	column int // -1: constant
	number float64
}

func (n numberOrParam) value(p *expr.ParamPage, row int) float64 {
	if n.column < 0 {
		return n.number
	}
	return p.Numbers[n.column][row]
}

func (c *circleSpace) axes() int { return 3 }

// chordMargin is more than all rounding errors of a distance and of a box, on a
// sphere of radius 1.
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

// circleSpaceOf understands geo.within where one place is the event's and the other, with
// the distance, the row's.
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

// rangeSpace are the extents of rows that say of one or two fields, each: at least
// this, and at most that.
type rangeSpace []fieldRange

type fieldRange struct {
	expr.Field
	low, high int // columns
}

// maxRanges is how many of a rule's ranges lead to cells: with each the levels in
// use multiply.
const maxRanges = 2

func (r rangeSpace) axes() int { return len(r) }

// box takes the ends in, whether the row does or not.
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

// rangeSpaceOf finds the fields that conjuncts bound on both sides. used are the
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
