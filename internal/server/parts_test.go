package server

import (
	"testing"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
	"fanfare.dev/fanfare/internal/registry"
)

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
