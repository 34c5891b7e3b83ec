package cadence

import (
	"testing"
	"time"
)

// BenchmarkNext is what a round of matching asks for each slot that it meets.
func BenchmarkNext(b *testing.B) {
	zone, err := time.LoadLocation("Europe/London")
	if err != nil {
		b.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for _, text := range []string{"window 1m", "daily 08:00", "weekly saturday 08:00", "cron */5 * * * *", "cron 0 8 1 * *", "cron 0 0 29 2 *", "cron * * 29 2 *"} {
		c, err := Parse(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				c.Next(now, zone)
			}
		})
	}
}
