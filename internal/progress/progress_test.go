package progress

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAPhaseThatTakesLongIsLoggedWithItsCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		ctx, stop := context.WithCancel(t.Context())
		var r Reporter
		go r.Run(ctx, slog.New(slog.NewTextHandler(&text, nil)))
		r.Begin("open the database", 0)
		<-time.After(time.Second)
		p := r.Begin("load subscriptions", 0)
		p.SetTotal(10)
		for range 5 {
			<-time.After(time.Second)
			p.Add(1)
		}
		stop()
		synctest.Wait()
		got := text.String()
		if strings.Count(got, "msg=starting") != 2 || !strings.Contains(got, `phase="load subscriptions" seconds=3 done=`) || !strings.Contains(got, "total=10") {
			t.Errorf("the log has %q", got)
		}
		if name, done, total := r.Now(); name != "load subscriptions" || done != 5 || total != 10 {
			t.Errorf("now: %s %d of %d", name, done, total)
		}
	})
}

func TestWithoutAPhaseNothingIsCounted(t *testing.T) {
	var p *Phase
	p.Add(1)
	p.SetTotal(1)
	if name, _, _ := new(Reporter).Now(); name != "" {
		t.Errorf("the phase is %q", name)
	}
}
