package lang

import (
	"math"
	"testing"
)

func TestDistancesAreThoseOfGreatCircles(t *testing.T) {
	quarter := EarthRadiusKm * math.Pi / 2
	vancouver, victoria := GeoPoint{49.2827, -123.1207}, GeoPoint{48.4284, -123.3656}
	for name, c := range map[string]struct {
		a, b GeoPoint
		km   float64
	}{
		"Vancouver to Victoria":      {vancouver, victoria, 96.6688}, // by the spherical law of cosines
		"a place to itself":          {vancouver, vancouver, 0},
		"pole to equator":            {GeoPoint{90, 12}, GeoPoint{0, -77}, quarter},
		"pole to pole":               {GeoPoint{90, 0}, GeoPoint{-90, 180}, 2 * quarter},
		"a pole has every longitude": {GeoPoint{90, 0}, GeoPoint{90, 123}, 0},
		"over the 180th meridian":    {GeoPoint{0, 179.5}, GeoPoint{0, -179.5}, quarter / 90},
		"180 is -180":                {GeoPoint{10, 180}, GeoPoint{10, -180}, 0},
		"over the pole":              {GeoPoint{89.5, 0}, GeoPoint{89.5, 180}, quarter / 90},
		"antipodes":                  {GeoPoint{12, 34}, GeoPoint{-12, -146}, 2 * quarter},
		"along the equator":          {GeoPoint{0, 10}, GeoPoint{0, 100}, quarter},
	} {
		if !c.a.Within(c.b, c.km+0.001) || !c.b.Within(c.a, c.km+0.001) {
			t.Errorf("%s: more than %v km", name, c.km)
		}
		if c.km > 0 && (c.a.Within(c.b, c.km-0.001) || c.b.Within(c.a, c.km-0.001)) {
			t.Errorf("%s: less than %v km", name, c.km)
		}
	}
}
