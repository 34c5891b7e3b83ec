package report

import (
	"strings"
	"testing"
	"time"
)

func TestASeriesIsShortAndKeepsTheRate(t *testing.T) {
	counts := make([]int64, 401)
	for i := range counts {
		counts[i] = 2
	}
	counts[400] = 5
	s := newSeries("x", 10*time.Millisecond, counts)
	if len(s.PerSecond) != 134 || s.StepMilli != 30 || s.PerSecond[0] != 200 || s.PerSecond[133] != 350 { // (2+5)/20 ms
		t.Errorf("%d steps of %d ms, from %v to %v", len(s.PerSecond), s.StepMilli, s.PerSecond[0], s.PerSecond[len(s.PerSecond)-1])
	}
}

func TestTheReportDrawsARateOverTime(t *testing.T) {
	r := example()
	r.Over = []Series{{"alone", 100, []float64{0, 100, 50}}, {"with <others>", 100, []float64{25}}}
	if got := newCurves(r.Over); got.Most != "100" || got.Seconds != "0.3" || got.Lines[0].Points != "168.3,200.0 405.0,12.0 641.7,106.0" {
		t.Errorf("%+v", got)
	}
	var page strings.Builder
	if err := WriteHTML(&page, []Record{r}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `<polyline class="line1" points="168.3,153.0"/>`) || !strings.Contains(page.String(), "with &lt;others&gt;") {
		t.Error(page.String())
	}
}
