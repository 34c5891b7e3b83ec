package condition

import (
	"math"
	"slices"

	"fanfare.dev/fanfare/internal/condition/assert"
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
	box(p *paramPage, row int) (box, bool)
	// point is where the event is; false where it is in no row's box.
	point(f *frame) ([maxAxes]float64, bool)
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
func (c *grid) keyOf(base uint64, p *paramPage, row int) (key uint64, on level, ok bool) {
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
func (c *grid) eachCellAt(f *frame, base uint64, visit func(key uint64)) {
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
