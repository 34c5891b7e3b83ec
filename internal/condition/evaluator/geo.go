package evaluator

import "math"

// earthRadius is the Earth's mean radius, in kilometres.
const earthRadius = 6371.0088

// tolerance is the distance in kilometres by which a place may exceed the limit: several
// coordinates denote the same place and round differently.
const tolerance = 1e-9

// within evaluates geo.within(lat, lon, lat, lon, km).
func within(args []value) value {
	var n [5]float64
	for i, arg := range args {
		if !arg.isNumber() {
			return errorValue(noOverload)
		}
		n[i] = arg.asDouble()
	}
	for i := 0; i < 4; i += 2 {
		// This form also refuses NaN.
		if !(math.Abs(n[i]) <= 90) {
			return errorValue("a latitude must be from -90 to 90")
		}
		if !(math.Abs(n[i+1]) <= 180) {
			return errorValue("a longitude must be from -180 to 180")
		}
	}
	if !(n[4] >= 0) || math.IsInf(n[4], 1) {
		return errorValue("a distance must be 0 or more")
	}
	return boolValue(distance(n[0], n[1], n[2], n[3]) <= n[4]+tolerance)
}

// distance returns the length of the great circle between two places in kilometres, by the
// haversine formula.
func distance(lat1, lon1, lat2, lon2 float64) float64 {
	const degree = math.Pi / 180
	north := math.Sin((lat2 - lat1) * degree / 2)
	east := math.Sin((lon2 - lon1) * degree / 2)
	h := north*north + math.Cos(lat1*degree)*math.Cos(lat2*degree)*east*east
	return 2 * earthRadius * math.Asin(math.Sqrt(min(h, 1)))
}
