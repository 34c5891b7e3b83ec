package harness

import (
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// A progressBar shows the progress of a long step. Without a terminal it shows nothing.
type ProgressBar struct {
	all *mpb.Progress
	one *mpb.Bar
}

func (l *Env) Progress(name string, total int64) *ProgressBar {
	if !l.Terminal {
		return &ProgressBar{}
	}
	p := mpb.NewWithContext(l.Ctx, mpb.WithOutput(l.Output), mpb.WithWidth(48))
	return &ProgressBar{p, p.AddBar(total, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("  "+name, decor.WCSyncSpaceR)),
		mpb.AppendDecorators(decor.Percentage(decor.WCSyncSpace), decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace)))}
}

func (b *ProgressBar) Set(done int64) {
	if b.one != nil {
		b.one.SetCurrent(done)
	}
}

// End removes the bar.
func (b *ProgressBar) End() {
	if b.one != nil {
		b.one.Abort(true)
		b.all.Wait()
	}
}

// SetOf sets the progress and the total.
func (b *ProgressBar) SetOf(done, total int64) {
	if b.one != nil {
		b.one.SetTotal(total, false)
		b.one.SetCurrent(done)
	}
}
