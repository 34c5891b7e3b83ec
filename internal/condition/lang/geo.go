package lang

import (
	"math"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// EarthRadiusKm is the mean radius R1 of the Earth (IUGG, GRS 80).
const EarthRadiusKm = 6371.0088

// GeoWithin is the function geo.within(lat, lon, lat, lon, km): whether two places, in degrees, are
// at most km apart on the surface of a sphere.
const GeoWithin = "geo.within"

func geoFunction() cel.EnvOption {
	d := cel.DynType
	return cel.Function(GeoWithin, cel.Overload("geo_within", []*cel.Type{d, d, d, d, d}, cel.BoolType,
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
			a, b := GeoPoint{numbers[0], numbers[1]}, GeoPoint{numbers[2], numbers[3]}
			if !a.IsValid() || !b.IsValid() || !IsDistance(numbers[4]) {
				return types.NewErr("%s", GeoRange)
			}
			return types.Bool(a.Within(b, numbers[4]))
		})))
}

const GeoRange = "a latitude must be from -90 to 90, a longitude from -180 to 180, and a distance at least 0"

// A GeoPoint is a place on the Earth, in degrees.
type GeoPoint struct{ Lat, Lon float64 }

// IsValid reports whether a is on the Earth; it is false for NaN.
func (a GeoPoint) IsValid() bool { return math.Abs(a.Lat) <= 90 && math.Abs(a.Lon) <= 180 }

func IsDistance(km float64) bool { return km >= 0 && !math.IsInf(km, 1) }

const Degree = math.Pi / 180

// roundingKm is the largest rounding error of a zero distance, such as that between two longitudes
// at a pole: a micrometre.
const roundingKm = 1e-9

// Within reports whether b is at most km away.
func (a GeoPoint) Within(b GeoPoint, km float64) bool {
	north := math.Abs(b.Lat-a.Lat) * Degree
	return north*EarthRadiusKm <= km+km*1e-9+1e-6 && // a quick test that excludes most points
		a.Distance(b) <= km+roundingKm
}

// Distance returns the great-circle distance in km by the haversine formula. Its error is
// centimetres at antipodes and less than a millimetre elsewhere.
func (a GeoPoint) Distance(b GeoPoint) float64 {
	s, e := math.Sin((b.Lat-a.Lat)*Degree/2), math.Sin((b.Lon-a.Lon)*Degree/2)
	h := s*s + math.Cos(a.Lat*Degree)*math.Cos(b.Lat*Degree)*e*e
	return 2 * EarthRadiusKm * math.Asin(math.Sqrt(min(h, 1)))
}

// Vector returns a as a point on a sphere with radius 1, where neither the poles nor the 180th
// meridian are special.
func (a GeoPoint) Vector() [3]float64 {
	sinLat, cosLat := math.Sincos(a.Lat * Degree)
	sinLon, cosLon := math.Sincos(a.Lon * Degree)
	return [3]float64{cosLat * cosLon, cosLat * sinLon, sinLat}
}
