package webhook

import (
	"net/http"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
)

// BenchmarkPost is one connection to one receiver on the same machine, whose work is
// in the figure.
func BenchmarkPost(b *testing.B) {
	r := receive(b, "http")
	r.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	letters := make([]*fanfare.Letter, b.N)
	for i := range letters {
		letters[i] = r.letter("/", "hello")
		letters[i].Delivery.Position = uint32(i)
	}
	desk := delivertest.NewDesk(letters...)
	b.ReportAllocs()
	b.ResetTimer()
	if err := New(r.config()).Serve(b.Context(), desk.Seat()); err != nil {
		b.Fatal(err)
	}
}
