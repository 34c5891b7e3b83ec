package harness

import (
	"testing"
)

func TestAMetricIsFoundByItsWholeName(t *testing.T) {
	text := "# TYPE fanfare_a counter\nfanfare_a_total 1\nfanfare_a 2.5e+06\nfanfare_b{x=\"fanfare_c 9\"} 3\n"
	for name, want := range map[string]float64{"fanfare_a": 2.5e6, "fanfare_a_total": 1, "fanfare_c": 0} {
		if got := metricOf(text, name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}
