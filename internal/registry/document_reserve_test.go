package registry

import "testing"

func TestAReserveThatSaysNothingIsTheUsualOne(t *testing.T) {
	for _, c := range []struct {
		reserve        Reserve
		urgent, normal float64
	}{
		{Reserve{}, 0.05, 0.05},
		{Reserve{Urgent: "10%"}, 0.1, 0.05},
		{Reserve{Urgent: "0%", Normal: "0%"}, 0, 0},
		{Reserve{Normal: "25%"}, 0.05, 0.25},
	} {
		if urgent, normal := c.reserve.Shares(); urgent != c.urgent || normal != c.normal {
			t.Errorf("%+v reserves %v and %v, want %v and %v", c.reserve, urgent, normal, c.urgent, c.normal)
		}
	}
}
