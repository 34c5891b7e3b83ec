package report

import (
	"testing"

	"fanfare.dev/fanfare"
)

// pausedNames are services, and service/channel, with the reason; "" is everything.
type pausedNames map[string]string

func (p pausedNames) Paused(service, channel string) (string, bool) {
	for _, name := range []string{"", service, service + "/" + channel} {
		if why, is := p[name]; is {
			return why, true
		}
	}
	return "", false
}

func (p pausedNames) AnyChannelPaused(string) bool { return len(p) > 0 }

func TestBroadcastWithAllChannelsPausedIsPaused(t *testing.T) {
	ref := refOf(0, 7)
	for name, test := range map[string]struct {
		pauses pausedNames
		state  string
		want   string
		reason string
	}{
		"nothing is paused":       {nil, "running", "running", ""},
		"everything":              {pausedNames{"": "a storm"}, "running", "paused", "a storm"},
		"its service":             {pausedNames{"news": "a storm"}, "running", "paused", "a storm"},
		"another service":         {pausedNames{"weather": "a storm"}, "running", "running", ""},
		"each of its channels":    {pausedNames{"news/channel-1": "one", "news/channel-2": "two"}, "running", "paused", "one"},
		"one of its two channels": {pausedNames{"news/channel-1": "one"}, "running", "running", ""},
		"one that is held":        {pausedNames{"": "a storm"}, "held", "held", "waits for approval"},
	} {
		t.Run(name, func(t *testing.T) {
			traces, r := newTraces(map[fanfare.EventRef][]int{ref: {4}})
			traces.Progress = counts{ref: {Counts: fanfare.Counts{fanfare.Pending: 3, fanfare.Accepted: 1}}}
			traces.Pauses = test.pauses
			r.broadcasts[ref].State = test.state
			if test.state == "held" {
				r.broadcasts[ref].Reason = "waits for approval"
			}
			b, err := traces.Broadcast(t.Context(), ref)
			if err != nil || b.State != test.want || b.Reason != test.reason {
				t.Errorf("it is %s: %s (%v)", b.State, b.Reason, err)
			}
			list, err := pageList(traces.Broadcasts(t.Context(), Pick{State: test.want, Limit: 10}))
			if err != nil || len(list) != 1 || list[0].State != test.want {
				t.Errorf("listed: %+v (%v)", list, err)
			}
		})
	}
}
