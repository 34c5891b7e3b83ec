package config

import (
	"math"
	"testing"
)

func TestAShareIsReadAndWritten(t *testing.T) {
	for text, want := range map[string]float64{"3%": 0.03, "0%": 0, "0.5%": 0.005, " 50 % ": 0.5, "unlimited": math.Inf(1)} {
		var s, again Share
		if err := s.UnmarshalText([]byte(text)); err != nil || math.Abs(float64(s)-want) > 1e-12 && float64(s) != want {
			t.Errorf("%q: %v, %v", text, float64(s), err)
		}
		if err := again.UnmarshalText([]byte(s.String())); err != nil || again != s {
			t.Errorf("%q became %q", text, s)
		}
	}
	for _, text := range []string{"", "3", "-1%", "51%", "NaN%", "all", "%", "Inf%"} {
		if err := new(Share).UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}
