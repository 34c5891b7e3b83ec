package expr

import (
	celast "cel.dev/cel-go/common/ast"

	"fanfare.dev/fanfare/internal/condition/lang"
)

// A WithinPredicate is geo.within.
type WithinPredicate struct {
	lat1, lon1, lat2, lon2, km Operand
}

func (t *WithinPredicate) Eval(f *Frame) Truth {
	a, ok1 := LoadGeoPoint(f, t.lat1, t.lon1)
	b, ok2 := LoadGeoPoint(f, t.lat2, t.lon2)
	km, ok3 := loadNumber(f, t.km)
	if !ok1 || !ok2 || !ok3 || !lang.IsDistance(km) {
		return Error
	}
	return TruthOf(a.Within(b, km))
}

func LoadGeoPoint(f *Frame, lat, lon Operand) (a lang.GeoPoint, ok bool) {
	var ok1, ok2 bool
	a.Lat, ok1 = loadNumber(f, lat)
	a.Lon, ok2 = loadNumber(f, lon)
	return a, ok1 && ok2 && a.IsValid()
}

// loadNumber loads a number as a double.
func loadNumber(f *Frame, x Operand) (float64, bool) {
	if p, ok := x.(NumberParam); ok {
		return f.Page.Numbers[p.column][f.Row], true
	}
	v, _ := x.Load(f)
	return ToFloat(v)
}

// geoWithin returns the predicate of a call of geo.within, or nil.
func (b *Builder) geoWithin(args []celast.Expr) Predicate {
	var x [5]Operand
	for i, arg := range args {
		if x[i] = b.Operand(arg); x[i] == nil {
			return nil
		}
	}
	return &WithinPredicate{x[0], x[1], x[2], x[3], x[4]}
}
