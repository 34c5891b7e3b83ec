package process

import (
	"context"
	"runtime/debug"
	"testing"
)

func TestALargeHeapGrowsByAsManyBytesAsASmallerOne(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, 70}, {100 << 20, 70}, {365 << 20, 70}, {512 << 20, 50}, {1 << 30, 25}, {8 << 30, 20},
	} {
		if got := percentFor(c.live); got != c.want {
			t.Errorf("with %d MiB in use: %d, expected %d", c.live>>20, got, c.want)
		}
	}
}

func TestTheCollectorIsSetToTheHeapOfThisProcess(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	TuneCollector(ctx) // once, since its end is asked for already
	if got := debug.SetGCPercent(100); got != gcPercent {
		t.Errorf("it is %d", got)
	}
}
