package report

import (
	"strings"
	"testing"
)

func TestATrendIsThatOfAllPoints(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   trend
	}{
		{nil, NearlyEqual},
		{[]float64{5}, NearlyEqual},
		{[]float64{100, 105, 95}, NearlyEqual},
		{[]float64{10, 20, 40}, Rises},
		{[]float64{10, 20, 19, 40}, Rises}, // a little back is noise
		{[]float64{10, 20, 12, 40}, neither},
		{[]float64{40, 20, 10}, Falls},
		{[]float64{40, 41, 10}, Falls},
		{[]float64{10, 40, 10}, neither},
	} {
		if got := trendOf(c.values); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestAPointIsTheValueOfTheRecord(t *testing.T) {
	var r Record
	r.AddPoint(Point{At: "1 char", Value: 10, Limit: 40})
	r.AddPoint(Point{At: "2 chars", Value: 5, Limit: 20, P99Millis: 3})
	if err := r.UsePoint("2 chars"); err != nil || r.Value != 5 || r.Limit != 20 || r.Ratio != 0.25 || r.P99Millis != 3 {
		t.Errorf("%v, %+v", err, r)
	}
	if err := r.UsePoint("3 chars"); err == nil {
		t.Error("a point that is not there was taken")
	}
	r.CompareShape(Rises)
	if !strings.HasSuffix(r.Notes[0], "NOT as published") {
		t.Errorf("said %s", r.Notes[0])
	}
	if bars := pointsPlot(&r).Bars; len(bars) != 4 || bars[1].Class != "theirs" || bars[1].Length != barWidth || bars[0].Length != barWidth/4 {
		t.Errorf("got %+v", bars)
	}
}
