package broker

import (
	"bytes"
	"encoding/binary"
	"testing"

	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/frame"
)

func kinds(t *testing.T, fn func(t *testing.T, kind session.Kind)) {
	for _, kind := range []session.Kind{session.Interactive, session.Durable} {
		t.Run(string(kind), func(t *testing.T) { fn(t, kind) })
	}
}

func TestEachRequestHasOneResponse(t *testing.T) {
	kinds(t, func(t *testing.T, kind session.Kind) {
		b := startBroker(t, newMemoryLog(), define(echo))
		info := open(t, b, session.Options{Worker: "echo", Kind: kind})
		for k := range 3 {
			go join(t, b, "echo", string(rune('a'+k)), 2).serve()
		}
		c := attach(t, b, info.ID, "one", 0)
		const n = 20_000
		sent := 0
		for len(c.responses) < n {
			for sent < n && uint64(sent) < c.window {
				k := min(100, n-sent, int(c.window)-sent)
				c.send(uint64(sent+1), numbered(sent+1, k)...)
				sent += k
			}
			if sent == n && !c.done && len(c.ended) == 0 {
				c.end()
				c.until("ended", func() bool { return len(c.ended) > 0 })
			} else {
				c.until("something", func() bool { return c.step(1) || c.step(patience) })
			}
			c.confirm() // the broker sends no more than maxSent responses without
		}
		c.until("done", func() bool { return c.done })
		seen := map[uint64]bool{}
		for _, r := range c.responses {
			if seen[r.Request] || r.Status != frame.OK || r.Attempts != 1 || !bytes.Equal(r.Body, binary.LittleEndian.AppendUint32(nil, uint32(r.Request))) {
				t.Fatalf("response %+v", r)
			}
			seen[r.Request] = true
		}
		if len(seen) != n || c.ended[0] != n || !c.responses[n-1].Last {
			t.Errorf("%d requests answered, ended %v, last %v", len(seen), c.ended, c.responses[n-1].Last)
		}
		got, err := b.Session(testService, info.ID)
		if err != nil || got.Requests != n || got.Responses != n || got.Queued != 0 || got.Running != 0 {
			t.Errorf("%+v %v", got, err)
		}
	})
}
