package limit

import (
	"testing"
	"time"
)

// peer accepts a number of messages in a sliding second and refuses others.
type peer struct {
	most  int
	taken []time.Time
}

func (p *peer) takes(now time.Time) bool {
	for len(p.taken) > 0 && now.Sub(p.taken[0]) >= time.Second {
		p.taken = p.taken[1:]
	}
	if len(p.taken) >= p.most {
		return false
	}
	p.taken = append(p.taken, now)
	return true
}

func TestLearnedRateStaysBelowRefusalsAndIsRaisedSlowly(t *testing.T) {
	p := &peer{most: 100}
	var f LearnedRate
	now := start
	taken, refused := 0, 0
	send := func(span time.Duration) {
		taken, refused = 0, 0
		for end := now.Add(span); now.Before(end); {
			now = now.Add(max(f.Wait(now), time.Millisecond))
			f.Take(now)
			if p.takes(now) {
				taken++
				f.Answered(false, now)
			} else {
				refused++
				f.Answered(true, now)
			}
		}
	}
	send(3 * time.Second)
	if f.PerSecond() < 80 || f.PerSecond() > 100 {
		t.Fatalf("after three seconds of refusals the rate is %.1f, the peer takes 100", f.PerSecond())
	}
	send(10 * time.Minute)
	if share := float64(refused) / float64(taken+refused); share > 0.01 {
		t.Errorf("%.2f %% were refused once the rate was known", share*100)
	}
	if rate := float64(taken) / 600; rate < 85 {
		t.Errorf("%.1f a second were taken of 100", rate)
	}
	p.most = 1000
	send(20 * time.Minute)
	if f.PerSecond() != 0 && f.PerSecond() < 200 {
		t.Errorf("the peer takes 1000 a second now, and the rate is still %.1f", f.PerSecond())
	}
}

func TestOneRefusalTeachesNoRate(t *testing.T) {
	var f LearnedRate
	for i := range 1000 {
		f.Answered(i == 500, start.Add(time.Duration(i)*10*time.Millisecond))
	}
	if f.PerSecond() != 0 {
		t.Errorf("one refusal of a thousand made a rate of %.1f", f.PerSecond())
	}
}
