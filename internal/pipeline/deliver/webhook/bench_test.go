package webhook

import (
	"net/http"
	"testing"

	"fanfare.dev/fanfare/internal/pipeline/deliver/delivertest"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
)

// BenchmarkPost measures one connection to a receiver on the same machine, including the
// receiver.
func BenchmarkPost(b *testing.B) {
	r := startReceiver(b, "http")
	r.handle(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	messages := make([]*driver.Message, b.N)
	for i := range messages {
		messages[i] = r.message("/", "hello")
		messages[i].Delivery.Position = uint32(i)
	}
	queue := delivertest.NewQueue(messages...)
	b.ReportAllocs()
	b.ResetTimer()
	if err := New(r.config()).Serve(b.Context(), queue.Connection()); err != nil {
		b.Fatal(err)
	}
}
