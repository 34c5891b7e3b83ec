package inbound

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"fanfare.dev/fanfare/internal/mailbox"
)

// BenchmarkLMTP delivers messages of 4 KB to 1,000 mailboxes on 50 connections.
func BenchmarkLMTP(b *testing.B) {
	const connections, accounts = 50, 1000
	p := startPost(b, LMTP)
	for i := range accounts {
		if _, err := p.store.Create(b.Context(), mailbox.Owner{ID: mailbox.AccountID(1000 + i), Service: "press", Address: fmt.Sprintf("person%d@example.org", i)}); err != nil {
			b.Fatal(err)
		}
	}
	body := strings.Repeat(strings.Repeat("x", 70)+"\r\n", 56)
	var next atomic.Int64
	b.SetParallelism(connections)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		c := p.lhlo()
		for pb.Next() {
			n := next.Add(1)
			c.send(fmt.Sprintf("MAIL FROM:<news@example.com>\r\nRCPT TO:<person%d@example.org>\r\nDATA\r\n", n%accounts))
			for _, want := range []string{"250 ", "250 ", "354 "} {
				c.expect("", want)
			}
			c.send(fmt.Sprintf("From: news@example.com\r\nSubject: message %d\r\nMessage-ID: <%d@example.com>\r\n\r\n%s.\r\n", n, n, body))
			c.expect("", "250 ")
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
