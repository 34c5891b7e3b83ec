package condition

import (
	"math"

	"cel.dev/cel-go/cel"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// earthRadiusKm is the mean radius R1 of the Earth (IUGG, GRS 80).
const earthRadiusKm = 6371.0088

// geoWithin is the function geo.within(lat, lon, lat, lon, km): whether two places,
// in degrees, are at most so far apart on the surface of a sphere.
const geoWithin = "geo.within"

func geoFunction() cel.EnvOption {
	d := cel.DynType
	return cel.Function(geoWithin, cel.Overload("geo_within", []*cel.Type{d, d, d, d, d}, cel.BoolType,
		cel.FunctionBinding(func(args ...ref.Val) ref.Val {
			var numbers [5]float64
			for i, arg := range args {
				switch v := arg.(type) {
				case types.Int:
					numbers[i] = float64(v)
				case types.Uint:
					numbers[i] = float64(v)
				case types.Double:
					numbers[i] = float64(v)
				default:
					return types.MaybeNoSuchOverloadErr(arg)
				}
			}
			a, b := geoPoint{numbers[0], numbers[1]}, geoPoint{numbers[2], numbers[3]}
			if !a.isValid() || !b.isValid() || !isDistance(numbers[4]) {
				return types.NewErr("%s", geoRange)
			}
			return types.Bool(a.within(b, numbers[4]))
		})))
}

const geoRange = "a latitude is -90 to 90, a longitude -180 to 180, a distance 0 or more"

// A place is a point on the Earth, in degrees.
type geoPoint struct{ lat, lon float64 }

// isValid is false for a NaN too.
func (a geoPoint) isValid() bool { return math.Abs(a.lat) <= 90 && math.Abs(a.lon) <= 180 }

func isDistance(km float64) bool { return km >= 0 && !math.IsInf(km, 1) }

const degree = math.Pi / 180

// roundingKm is what rounding may make of no distance at all, as between two
// longitudes of a pole: a micrometre.
const roundingKm = 1e-9

// within reports whether b is at most km away.
func (a geoPoint) within(b geoPoint, km float64) bool {
	north := math.Abs(b.lat-a.lat) * degree
	return north*earthRadiusKm <= km+km*1e-9+1e-6 && // most others end here
		a.distance(b) <= km+roundingKm
}

// distance is the great circle's, in km, by the haversine formula: exact to
// centimetres at antipodes, to less than a millimetre elsewhere.
func (a geoPoint) distance(b geoPoint) float64 {
	s, e := math.Sin((b.lat-a.lat)*degree/2), math.Sin((b.lon-a.lon)*degree/2)
	h := s*s + math.Cos(a.lat*degree)*math.Cos(b.lat*degree)*e*e
	return 2 * earthRadiusKm * math.Asin(math.Sqrt(min(h, 1)))
}

// vector is where a lies on a sphere of radius 1, so that neither the poles nor the
// 180th meridian are anything special.
func (a geoPoint) vector() [maxAxes]float64 {
	sinLat, cosLat := math.Sincos(a.lat * degree)
	sinLon, cosLon := math.Sincos(a.lon * degree)
	return [maxAxes]float64{cosLat * cosLon, cosLat * sinLon, sinLat}
}

// A withinTest is geo.within.
type WithinPredicate struct {
	lat1, lon1, lat2, lon2, km operand
}

func (t *WithinPredicate) eval(f *frame) Truth {
	a, ok1 := loadGeoPoint(f, t.lat1, t.lon1)
	b, ok2 := loadGeoPoint(f, t.lat2, t.lon2)
	km, ok3 := loadNumber(f, t.km)
	if !ok1 || !ok2 || !ok3 || !isDistance(km) {
		return Error
	}
	return truthOf(a.within(b, km))
}

func loadGeoPoint(f *frame, lat, lon operand) (a geoPoint, ok bool) {
	var ok1, ok2 bool
	a.lat, ok1 = loadNumber(f, lat)
	a.lon, ok2 = loadNumber(f, lon)
	return a, ok1 && ok2 && a.isValid()
}

// loadNumber loads a number as a double.
func loadNumber(f *frame, x operand) (float64, bool) {
	if p, ok := x.(numberParam); ok {
		return f.page.numbers[p.column][f.row], true
	}
	v, _ := x.load(f)
	return toFloat(v)
}

// geoWithin is the test of a call of geo.within, or nil.
func (b *builder) geoWithin(args []celast.Expr) Predicate {
	var x [5]operand
	for i, arg := range args {
		if x[i] = b.operand(arg); x[i] == nil {
			return nil
		}
	}
	return &WithinPredicate{x[0], x[1], x[2], x[3], x[4]}
}

// circleSpace are the extents of rows that want events near a place of their own. Their
// boxes are around the circle on the sphere, in space.
type circleSpace struct {
	lat, lon field
	center   [2]numberOrParam
	km       numberOrParam
}

// A rowNumber is a param, or the same number for all rows.
type numberOrParam struct {
	column int // -1: constant
	number float64
}

func (n numberOrParam) value(p *paramPage, row int) float64 {
	if n.column < 0 {
		return n.number
	}
	return p.numbers[n.column][row]
}

func (c *circleSpace) axes() int { return 3 }

// chordMargin is more than all rounding errors of a distance and of a box, on a
// sphere of radius 1.
const chordMargin = 1e-12

func (c *circleSpace) box(p *paramPage, row int) (b box, ok bool) {
	center, km := geoPoint{c.center[0].value(p, row), c.center[1].value(p, row)}, c.km.value(p, row)
	if !center.isValid() || !isDistance(km) {
		return b, false
	}
	chord := 2*math.Sin(min(km/(2*earthRadiusKm), math.Pi/2)) + chordMargin
	for i, x := range center.vector() {
		b.low[i], b.high[i] = x-chord, x+chord
	}
	return b, true
}

func (c *circleSpace) point(f *frame) (at [maxAxes]float64, ok bool) {
	a, ok := loadGeoPoint(f, c.lat, c.lon)
	if !ok {
		return at, false
	}
	return a.vector(), true
}

// circleSpaceOf understands geo.within where one place is the event's and the other, with
// the distance, the row's.
func circleSpaceOf(b *builder, e celast.Expr) (*circleSpace, bool) {
	if e.Kind() != celast.CallKind || e.AsCall().FunctionName() != geoWithin {
		return nil, false
	}
	args := e.AsCall().Args()
	for _, first := range [...]int{0, 2} { // the event's place
		lat, ok1 := b.source(args[first])
		lon, ok2 := b.source(args[first+1])
		centerLat, ok3 := numberOrParamOf(b, args[2-first])
		centerLon, ok4 := numberOrParamOf(b, args[3-first])
		km, ok5 := numberOrParamOf(b, args[4])
		if ok1 && ok2 && ok3 && ok4 && ok5 {
			return &circleSpace{field{b.path(lat)}, field{b.path(lon)}, [2]numberOrParam{centerLat, centerLon}, km}, true
		}
	}
	return nil, false
}

func numberOrParamOf(b *builder, e celast.Expr) (n numberOrParam, ok bool) {
	if p, isParam := b.param(e); isParam {
		return numberOrParam{column: p.column}, p.isNumber()
	}
	v, _ := literal(e)
	n.column = -1
	n.number, ok = toFloat(v)
	return n, ok
}
