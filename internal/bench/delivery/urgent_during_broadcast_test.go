package delivery

import (
	"slices"
	"testing"
	"time"

	"fanfare.dev/fanfare/internal/bench/loadgen"
)

func TestTheLatencyOfAnUrgentMessageIsFromItsAnswerToTheSink(t *testing.T) {
	answered := time.Unix(1_800_000_000, 0)
	a := &urgentMessages{posted: []urgentMessage{{answered: answered}, {answered: answered}, {answered: answered}}}
	record := t.TempDir() + "/record"
	lines := []string{
		"1800000000020000000\te1\talarm00000001@example.net\t<1@x>", "1799999999999000000\te0\talarm00000000@example.net\t<0@x>",
	}
	if _, err := loadgen.WriteLines(record, len(lines), func(dst []byte, i int) []byte { return append(append(dst, lines[i]...), '\n') }); err != nil {
		t.Fatal(err)
	}
	late, err := a.latencies(record)
	if err != nil || !slices.Equal(late, []float64{0, 20}) { // the third did not come; the first came before its answer was read
		t.Errorf("%v, %v", late, err)
	}
}
