package control

import (
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/pipeline/deliver/channels"
)

func TestDecideCombinesAllSwitches(t *testing.T) {
	event, other := fanfare.EventRef{Day: 1, Seq: 7}, fanfare.EventRef{Day: 1, Seq: 8}
	email := &catalog.Channel{Number: 3, Service: "news", Name: "email"}
	everything := "stopped all"
	for _, c := range []struct {
		name  string
		set   func(*snapshot)
		event fanfare.EventRef
		want  deliver.Decision
		why   string
	}{
		{"nothing", func(*snapshot) {}, event, deliver.Go, ""},
		{"all", func(b *snapshot) { b.all = &everything }, event, deliver.Hold, everything},
		{"the service", func(b *snapshot) { b.services["news"] = "s" }, event, deliver.Hold, "s"},
		{"another service", func(b *snapshot) { b.services["weather"] = "s" }, event, deliver.Go, ""},
		{"the channel", func(b *snapshot) { b.channels[channelName{"news", "email"}] = "c" }, event, deliver.Hold, "c"},
		{"a channel of that name in another service", func(b *snapshot) { b.channels[channelName{"weather", "email"}] = "c" }, event, deliver.Go, ""},
		{"the broadcast", func(b *snapshot) { b.set(event, 0, fanfare.SwitchPaused) }, event, deliver.Hold, "why"},
		{"the broadcast, cancelled", func(b *snapshot) { b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"another broadcast", func(b *snapshot) { b.set(event, 0, fanfare.SwitchCancelled) }, other, deliver.Go, ""},
		{"the broadcast in this channel", func(b *snapshot) { b.set(event, 3, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"the broadcast in another channel", func(b *snapshot) { b.set(event, 4, fanfare.SwitchCancelled) }, event, deliver.Go, ""},
		{"the broadcast, and cancelled in this channel", func(b *snapshot) {
			b.set(event, 0, fanfare.SwitchPaused)
			b.set(event, 3, fanfare.SwitchCancelled)
		}, event, deliver.Cancel, "why"},
		{"all, and the broadcast cancelled", func(b *snapshot) { b.all = &everything; b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"the service, and the broadcast cancelled in this channel", func(b *snapshot) { b.services["news"] = "s"; b.set(event, 3, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"a fault of the channel", func(b *snapshot) { b.setFault(3, false) }, event, deliver.Hold, "fault"},
		{"a fault of another channel", func(b *snapshot) { b.setFault(4, false) }, event, deliver.Go, ""},
		{"a fault of the channel, and the broadcast cancelled", func(b *snapshot) { b.setFault(3, false); b.set(event, 0, fanfare.SwitchCancelled) }, event, deliver.Cancel, "why"},
		{"a fault of a deleted channel", func(b *snapshot) { b.setFault(3, true); b.all = &everything }, event, deliver.Cancel, "fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap := &snapshot{services: map[string]string{}, channels: map[channelName]string{}, broadcasts: map[target]broadcastSwitch{}}
			c.set(snap)
			if got, why := snap.decide(c.event, email); got != c.want || why != c.why {
				t.Errorf("got %v, %q, want %v, %q", got, why, c.want, c.why)
			}
		})
	}
}

func (b *snapshot) setFault(channel uint16, gone bool) {
	b.faults = &channels.Faults{}
	b.faults.Set(channel, &channels.Fault{Reason: "fault", Deleted: gone})
}

func (b *snapshot) set(event fanfare.EventRef, channel uint16, state string) {
	b.broadcasts[target{event, channel}] = broadcastSwitch{Switch: fanfare.Switch{Event: event, Channel: channel, State: state, Reason: "why"}}
}

func TestCopyLeavesTheOriginalUnchanged(t *testing.T) {
	snap := &snapshot{broadcasts: map[target]broadcastSwitch{}}
	snap.set(fanfare.EventRef{Day: 1, Seq: 7}, 0, fanfare.SwitchPaused)
	next := snap.copy()
	next.set(fanfare.EventRef{Day: 1, Seq: 8}, 0, fanfare.SwitchPaused)
	if len(snap.broadcasts) != 1 || len(next.broadcasts) != 2 {
		t.Errorf("%d and %d switches, want 1 and 2", len(snap.broadcasts), len(next.broadcasts))
	}
}
