package backup

import (
	"context"
	"io"
	"time"
)

// pace limits the bytes per second, and writes nothing after its context has ended.
type pace struct {
	ctx       context.Context
	to        io.Writer
	perSecond int64 // 0: no limit
	began     time.Time
	passed    int64
}

func newPace(ctx context.Context, to io.Writer, perSecond int64) *pace {
	return &pace{ctx: ctx, to: to, perSecond: perSecond, began: time.Now()}
}

// shortestRest is the shortest pause. Shorter pauses are added up until they reach it.
const shortestRest = 10 * time.Millisecond

func (p *pace) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if rest := p.ahead(time.Since(p.began)); rest >= shortestRest {
		timer := time.NewTimer(rest)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		}
	}
	n, err := p.to.Write(b)
	p.passed += int64(n)
	return n, err
}

// ahead returns how long the next write must wait.
func (p *pace) ahead(elapsed time.Duration) time.Duration {
	if p.perSecond <= 0 {
		return 0
	}
	due := time.Duration(float64(p.passed) / float64(p.perSecond) * float64(time.Second))
	return due - elapsed
}
