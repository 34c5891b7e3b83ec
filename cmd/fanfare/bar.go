package main

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A bar shows how far a long step is. It is silent where nobody looks.
type bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	items    atomic.Int64
	began    time.Time
}

// newBar shows a bar on standard error. total is what set counts up to; 0 is
// unknown. unit names the items, whose rate is shown.
func (c *cli) newBar(label, unit string, total int64) *bar {
	b := &bar{began: time.Now()}
	if !isTerminal(c.err) {
		return b
	}
	rate := decor.Any(func(decor.Statistics) string {
		n := b.items.Load()
		perSecond := float64(n) / max(time.Since(b.began).Seconds(), 0.001)
		return fmt.Sprintf(" %s %s, %s/s", grouped(n), unit, grouped(int64(perSecond)))
	})
	before := []decor.Decorator{decor.Name(label + " ")}
	if total > 0 {
		before = append(before, decor.Percentage(decor.WC{W: 5}))
	}
	b.progress = mpb.New(mpb.WithOutput(c.err), mpb.WithWidth(40), mpb.WithRefreshRate(150*time.Millisecond))
	b.bar = b.progress.New(total, mpb.BarStyle(), mpb.PrependDecorators(before...), mpb.AppendDecorators(rate))
	return b
}

// set says how far it is: done of the total, and so many items.
func (b *bar) set(done, items int64) {
	b.items.Store(items)
	if b.bar != nil {
		b.bar.SetCurrent(done)
	}
}

// of says how far a stream of bytes is whose end is about known.
func (b *bar) of(done, total int64) {
	if b.bar != nil {
		b.bar.SetTotal(total, false)
	}
	b.set(done, done)
}

// end leaves the bar as it is and goes to the next line.
func (b *bar) end() {
	if b.bar == nil {
		return
	}
	b.bar.SetTotal(-1, true)
	b.progress.Wait()
}

// amount writes how many there are of something: 1 event, or 1,234 events.
func amount(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return grouped(n) + " " + more
}

// grouped writes n with thousands apart: 1,234,567.
func grouped(n int64) string {
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
