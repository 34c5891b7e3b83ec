package harness

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A progressBar shows the progress of a long step. Without a terminal it shows nothing.
type progressBar struct {
	all *mpb.Progress
	one *mpb.Bar
}

func (l *Env) Progress(name string, total int64) *progressBar {
	if !l.Terminal {
		return &progressBar{}
	}
	p := mpb.NewWithContext(l.Ctx, mpb.WithOutput(l.Output), mpb.WithWidth(48))
	return &progressBar{p, p.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("  "+name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))}
}

func (b *progressBar) Set(done int64) {
	if b.one != nil {
		b.one.SetCurrent(done)
	}
}

// End removes the bar.
func (b *progressBar) End() {
	if b.one != nil {
		b.one.Abort(true)
		b.all.Wait()
	}
}

// SetOf sets the progress and the total.
func (b *progressBar) SetOf(done, total int64) {
	if b.one != nil {
		b.one.SetTotal(total, false)
		b.one.SetCurrent(done)
	}
}
