package bench

import (
	"slices"
	"strings"
	"testing"
)

func TestATrendIsThatOfAllPoints(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   trend
	}{
		{nil, nearlyEqual},
		{[]float64{5}, nearlyEqual},
		{[]float64{100, 105, 95}, nearlyEqual},
		{[]float64{10, 20, 40}, rises},
		{[]float64{10, 20, 19, 40}, rises}, // a little back is noise
		{[]float64{10, 20, 12, 40}, neither},
		{[]float64{40, 20, 10}, falls},
		{[]float64{40, 41, 10}, falls},
		{[]float64{10, 40, 10}, neither},
	} {
		if got := trendOf(c.values); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestAPointIsTheValueOfTheRecord(t *testing.T) {
	var r Record
	r.point(Point{At: "1 char", Value: 10, Limit: 40})
	r.point(Point{At: "2 chars", Value: 5, Limit: 20, P99Millis: 3})
	if err := r.stand("2 chars"); err != nil || r.Value != 5 || r.Limit != 20 || r.Ratio != 0.25 || r.P99Millis != 3 {
		t.Errorf("%v, %+v", err, r)
	}
	if err := r.stand("3 chars"); err == nil {
		t.Error("a point that is not there was taken")
	}
	r.judgeShape(rises)
	if !strings.HasSuffix(r.Notes[0], "NOT as published") {
		t.Errorf("said %s", r.Notes[0])
	}
	if bars := pointsPlot(&r).Bars; len(bars) != 4 || bars[1].Class != "theirs" || bars[1].Length != barWidth || bars[0].Length != barWidth/4 {
		t.Errorf("got %+v", bars)
	}
}

func TestTheBatchDemandsOneMailForEachPersonAndStrongEnoughEvent(t *testing.T) {
	b := quakeBatch{magnitudes: []float64{4.9, 5, 6.4}, wishes: []float64{5, 6.4, 6.5}}
	if got := b.mails(); got != 3 {
		t.Errorf("%d mails", got)
	}
	one, err := readQuakes(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := readQuakes(100, 1)
	if err != nil || !slices.Equal(one.wishes, again.wishes) || len(one.magnitudes) != 1707 || one.mails() == 0 {
		t.Errorf("%d events, %d mails, %v", len(one.magnitudes), one.mails(), err)
	}
}

func TestEventDataHaveTheirSize(t *testing.T) {
	for _, size := range []int{25, 250, 5000} {
		if got := len(textOf(size)) - 1; got != size {
			t.Errorf("%d chars, want %d", got, size)
		}
	}
}
