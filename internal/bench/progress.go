package bench

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A bar shows how far a long step is. Without a terminal it shows nothing.
type bar struct {
	all *mpb.Progress
	one *mpb.Bar
}

func (l *lab) bar(name string, total int64) *bar {
	if !l.Terminal {
		return &bar{}
	}
	p := mpb.NewWithContext(l.ctx, mpb.WithOutput(l.Output), mpb.WithWidth(48))
	return &bar{p, p.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("  "+name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))}
}

func (b *bar) set(done int64) {
	if b.one != nil {
		b.one.SetCurrent(done)
	}
}

// end takes the bar away.
func (b *bar) end() {
	if b.one != nil {
		b.one.Abort(true)
		b.all.Wait()
	}
}

// setOf sets how much there is, too.
func (b *bar) setOf(done, total int64) {
	if b.one != nil {
		b.one.SetTotal(total, false)
		b.one.SetCurrent(done)
	}
}
