package document

import (
	"testing"

	"fanfare.dev/fanfare/internal/catalog"
)

func TestAReserveThatSaysNothingIsTheUsualOne(t *testing.T) {
	for _, c := range []struct {
		reserve        catalog.Reserve
		urgent, normal float64
	}{
		{catalog.Reserve{}, 0.05, 0.05},
		{catalog.Reserve{Urgent: "10%"}, 0.1, 0.05},
		{catalog.Reserve{Urgent: "0%", Normal: "0%"}, 0, 0},
		{catalog.Reserve{Normal: "25%"}, 0.05, 0.25},
	} {
		if urgent, normal := c.reserve.Shares(); urgent != c.urgent || normal != c.normal {
			t.Errorf("%+v reserves %v and %v, want %v and %v", c.reserve, urgent, normal, c.urgent, c.normal)
		}
	}
}
