package terminal

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A Bar shows how far a long step is. It is silent where nobody looks.
type Bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	items    atomic.Int64
	began    time.Time
}

// NewBar shows a bar on out. total is what set counts up to; 0 is
// unknown. unit names the items, whose rate is shown.
func NewBar(out io.Writer, label, unit string, total int64) *Bar {
	b := &Bar{began: time.Now()}
	if !IsTerminal(out) {
		return b
	}
	rate := decor.Any(func(decor.Statistics) string {
		n := b.items.Load()
		perSecond := float64(n) / max(time.Since(b.began).Seconds(), 0.001)
		return fmt.Sprintf(" %s %s, %s/s", Grouped(n), unit, Grouped(int64(perSecond)))
	})
	before := []decor.Decorator{decor.Name(label + " ")}
	if total > 0 {
		before = append(before, decor.Percentage(decor.WC{W: 5}))
	}
	b.progress = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithRefreshRate(150*time.Millisecond))
	b.bar = b.progress.New(total, mpb.BarStyle(), mpb.PrependDecorators(before...), mpb.AppendDecorators(rate))
	return b
}

// Set says how far it is: done of the total, and so many items.
func (b *Bar) Set(done, items int64) {
	b.items.Store(items)
	if b.bar != nil {
		b.bar.SetCurrent(done)
	}
}

// Of says how far a stream of bytes is whose end is about known.
func (b *Bar) Of(done, total int64) {
	if b.bar != nil {
		b.bar.SetTotal(total, false)
	}
	b.Set(done, done)
}

// End leaves the bar as it is and goes to the next line.
func (b *Bar) End() {
	if b.bar == nil {
		return
	}
	b.bar.SetTotal(-1, true)
	b.progress.Wait()
}

// Amount writes how many there are of something: 1 event, or 1,234 events.
func Amount(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Grouped(n) + " " + more
}

// Grouped writes n with thousands apart: 1,234,567.
func Grouped(n int64) string {
	digits := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
