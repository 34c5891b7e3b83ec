package demo

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A screen shows one step after the other: a bar while a step runs, and a line at its end. Without
// a terminal it shows a line every second instead of the bar.
type screen struct {
	out      io.Writer
	terminal bool

	mu   sync.Mutex
	bars *mpb.Progress // of the running step, or nil
}

// Write writes text above the bar of the running step. The logs use it.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bars != nil {
		return s.bars.Write(p)
	}
	return s.out.Write(p)
}

func (s *screen) say(format string, args ...any) { fmt.Fprintf(s, format+"\n", args...) }

// A step is a part of the demonstration that takes some time.
type step struct {
	screen      *screen
	name, unit  string
	done, total atomic.Int64
	before      atomic.Pointer[string] // shown until the first unit is done
	started     time.Time
	bar         *mpb.Bar
	quiet       chan struct{} // closed at the end of the step
	ticking     sync.WaitGroup
}

// begin shows a step of total units; 0 if the total is not known yet.
func (s *screen) begin(ctx context.Context, name, unit string, total int) *step {
	t := &step{screen: s, name: name, unit: unit, started: time.Now(), quiet: make(chan struct{})}
	t.total.Store(int64(total))
	if unit == "" {
		return t
	}
	if !s.terminal {
		t.ticking.Go(t.tick)
		return t
	}
	bars := mpb.NewWithContext(ctx, mpb.WithOutput(s.out), mpb.WithWidth(74))
	t.bar = bars.New(0, mpb.BarStyle().Lbound("[").Filler("=").Tip("=").Padding(" ").Rbound("]"),
		mpb.PrependDecorators(decor.Name(fmt.Sprintf("  %-8s", name))),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string {
			return " " + t.text()
		})))
	t.bar.SetTotal(int64(total), false)
	s.mu.Lock()
	s.bars = bars
	s.mu.Unlock()
	return t
}

// text returns the progress as text.
func (t *step) text() string {
	if before := t.before.Load(); before != nil && t.done.Load() == 0 {
		return *before
	}
	done, total := count(t.done.Load()), count(t.total.Load())
	if total == "0" {
		return done + " " + t.unit
	}
	return fmt.Sprintf("%*s of %s %s", len(total), done, total, t.unit)
}

// tick writes the progress as lines if there is no terminal.
func (t *step) tick() {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
			t.screen.say("  %-9s%s", t.name, t.text())
		case <-t.quiet:
			return
		}
	}
}

func (t *step) set(done int64) { t.setOf(done, t.total.Load()) }

func (t *step) setOf(done, total int64) {
	t.done.Store(done)
	t.total.Store(total)
	if t.bar != nil {
		t.bar.SetTotal(total, false)
		t.bar.SetCurrent(done)
	}
}

// drop removes the bar without a message.
func (t *step) drop() {
	close(t.quiet)
	t.ticking.Wait()
	if t.bar == nil {
		return
	}
	t.screen.mu.Lock()
	bars := t.screen.bars
	t.screen.bars = nil
	t.screen.mu.Unlock()
	t.bar.Abort(true)
	bars.Wait()
}

// end removes the bar and writes the result of the step and its duration.
func (t *step) end(format string, args ...any) {
	took := time.Since(t.started)
	t.drop()
	t.screen.say("  %-9s%-59s %6.2f s", t.name, fmt.Sprintf(format, args...), took.Seconds())
}

// count formats a number with commas between the thousands.
func count[N int | int64](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// rate formats the number of units per second.
func rate[N int | int64](n N, took time.Duration) string {
	if took <= 0 {
		return "0"
	}
	return count(int64(float64(n) / took.Seconds()))
}
