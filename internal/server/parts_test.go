package server

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/registry"
)

func refs(positions ...uint32) []fanfare.DeliveryRef {
	list := make([]fanfare.DeliveryRef, len(positions))
	for i, p := range positions {
		list[i] = fanfare.DeliveryRef{Day: 1, Manifest: 64, Position: p}
	}
	return list
}

func TestADeliveryIsClaimedByOneAtATime(t *testing.T) {
	c := newClaims()
	if got := c.take(refs(1, 2, 3)); !slices.Equal(got, refs(1, 2, 3)) {
		t.Errorf("all are free: %v", got)
	}
	if got := c.take(refs(2, 4, 4, 3, 5)); !slices.Equal(got, refs(4, 5)) {
		t.Errorf("2 and 3 are taken, and 4 once: %v", got)
	}
	c.release(refs(2, 9)...)
	if got := c.take(refs(1, 2)); !slices.Equal(got, refs(2)) {
		t.Errorf("only 2 was given back: %v", got)
	}
	c.release(refs(1, 2, 3, 4, 5)...)
	if len(c.held) != 0 {
		t.Errorf("%d claims are left", len(c.held))
	}
}

// Letters that are one message stand together, and so not as they were claimed.
func TestWhatLeavesIsClaimedInWhateverOrderItLeaves(t *testing.T) {
	out := &loaded{}
	d := &dispatch{loader: &loader{stage: &stage{claims: newClaims()}}}
	out.mine = d.loader.claims.take(refs(1, 2, 3, 4))
	for _, ref := range refs(4, 1, 2) {
		out.jobs = append(out.jobs, deliver.Job{Message: driver.Message{Delivery: ref}})
	}
	d.releaseUnused(out)
	if got := d.loader.claims.take(refs(1, 2, 3, 4)); !slices.Equal(got, refs(3)) {
		t.Errorf("%v are free, want 3 alone", got)
	}
}

func TestManyWhoClaimAtOnceNeverShareADelivery(t *testing.T) {
	c := newClaims()
	var owners [200]int32
	var mu sync.Mutex
	var workers sync.WaitGroup
	for worker := range 8 {
		workers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 0))
			for range 300 {
				var wanted []uint32
				for p := uint32(random.IntN(len(owners))); int(p) < len(owners) && len(wanted) < 40; p += 1 + uint32(random.IntN(3)) {
					wanted = append(wanted, p)
				}
				mine := c.take(refs(wanted...))
				mu.Lock()
				for _, ref := range mine {
					if owners[ref.Position]++; owners[ref.Position] != 1 {
						t.Errorf("delivery %d has %d owners", ref.Position, owners[ref.Position])
					}
				}
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				for _, ref := range mine {
					owners[ref.Position]--
				}
				mu.Unlock()
				c.release(mine...)
			}
		})
	}
	workers.Wait()
	if len(c.held) != 0 {
		t.Errorf("%d claims are left", len(c.held))
	}
}

// TestWhatASwitchReaches sets each combination of switches and asks for an event
// and a channel.
func TestWhatASwitchReaches(t *testing.T) {
	event, other := fanfare.EventRef{Day: 1, Seq: 7}, fanfare.EventRef{Day: 1, Seq: 8}
	email := &registry.Channel{Number: 3, Service: "news", Name: "email"}
	everything := "stopped all"
	for _, c := range []struct {
		name  string
		set   func(*switchboard)
		event fanfare.EventRef
		want  deliver.Decision
		why   string
	}{
		{"nothing", func(*switchboard) {}, event, deliver.Go, ""},
		{"all", func(b *switchboard) { b.all = &everything }, event, deliver.Hold, everything},
		{"the service", func(b *switchboard) { b.services["news"] = "s" }, event, deliver.Hold, "s"},
		{"another service", func(b *switchboard) { b.services["weather"] = "s" }, event, deliver.Go, ""},
		{"the channel", func(b *switchboard) { b.channels[channelName{"news", "email"}] = "c" }, event, deliver.Hold, "c"},
		{"a channel of that name elsewhere", func(b *switchboard) { b.channels[channelName{"weather", "email"}] = "c" }, event, deliver.Go, ""},
		{"the broadcast", func(b *switchboard) { b.set(event, 0, fanfare.SwitchPaused) }, event, deliver.Hold, "why"},
		{"the broadcast, for good", func(b *switchboard) { b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"another broadcast", func(b *switchboard) { b.set(event, 0, fanfare.SwitchCancelled) }, other, deliver.Go, ""},
		{"the broadcast in this channel", func(b *switchboard) { b.set(event, 3, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"the broadcast in another channel", func(b *switchboard) { b.set(event, 4, fanfare.SwitchCancelled) }, event, deliver.Go, ""},
		{"the broadcast, and in this channel for good", func(b *switchboard) {
			b.set(event, 0, fanfare.SwitchPaused)
			b.set(event, 3, fanfare.SwitchCancelled)
		}, event, deliver.Cancel, "why"},
		{"all, and the broadcast for good", func(b *switchboard) { b.all = &everything; b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"the service, and the broadcast in this channel for good", func(b *switchboard) { b.services["news"] = "s"; b.set(event, 3, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"what the channel lacks", func(b *switchboard) { b.lacks(3, false) }, event, deliver.Hold, "lacks"},
		{"what another channel lacks", func(b *switchboard) { b.lacks(4, false) }, event, deliver.Go, ""},
		{"what the channel lacks, and the broadcast for good", func(b *switchboard) { b.lacks(3, false); b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"what the channel lacked until its end", func(b *switchboard) { b.lacks(3, true); b.all = &everything }, event, deliver.Cancel, "lacks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			board := &switchboard{services: map[string]string{}, channels: map[channelName]string{}, broadcasts: map[part]stopped{}}
			c.set(board)
			if got, why := board.decide(c.event, email); got != c.want || why != c.why {
				t.Errorf("got %v, %q, want %v, %q", got, why, c.want, c.why)
			}
		})
	}
}

func (b *switchboard) lacks(channel uint16, gone bool) {
	b.faults = &channels.Faults{}
	b.faults.Set(channel, &channels.Fault{Reason: "lacks", Deleted: gone})
}

func (b *switchboard) set(event fanfare.EventRef, channel uint16, state string) {
	b.broadcasts[part{event, channel}] = stopped{Switch: fanfare.Switch{Event: event, Channel: channel, State: state, Reason: "why"}}
}

func TestABoardThatIsInForceIsNotChanged(t *testing.T) {
	board := &switchboard{broadcasts: map[part]stopped{}}
	board.set(fanfare.EventRef{Day: 1, Seq: 7}, 0, fanfare.SwitchPaused)
	next := board.copy()
	next.set(fanfare.EventRef{Day: 1, Seq: 8}, 0, fanfare.SwitchPaused)
	if len(board.broadcasts) != 1 || len(next.broadcasts) != 2 {
		t.Errorf("%d and %d switches, want 1 and 2", len(board.broadcasts), len(next.broadcasts))
	}
}

// setClock is set by hand.
type setClock struct{ now time.Time }

func (c *setClock) Now() time.Time { return c.now }
