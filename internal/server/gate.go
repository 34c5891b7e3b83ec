package server

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
	"fanfare.dev/fanfare/internal/registry"
)

// gate is asked before each message of one channel leaves.
type gate struct {
	registry *registry.Registry
	switches *switches
	channel  uint16
	refuses  func(address string) bool
}

func (s *stage) gate(channel uint16) deliver.Gate {
	return &gate{registry: s.registry, switches: s.switches, channel: channel, refuses: s.refuses}
}

// Check refuses what is stopped, and what nobody wants any more.
func (g *gate) Check(job *deliver.Job) (deliver.Decision, string) {
	channel, ok := g.registry.Channel(g.channel)
	if !ok {
		return deliver.Cancel, deliver.ChannelDeleted
	}
	event := fanfare.EventRef{Day: job.Message.Delivery.Day, Seq: job.Message.Delivery.Manifest.Event()}
	if decision, why := g.switches.now.Load().decide(event, channel); decision != deliver.Go {
		return decision, why
	}
	if g.refuses(job.Message.To) {
		return deliver.Suppress, notAllowed
	}
	if why := g.registry.Suppressing(channel, job.Message.To, &job.GateState); why != "" && !welcome(job.Requested, why) {
		return deliver.Suppress, suppressedFor(why)
	}
	return wanted(job, g.registry.Live)
}

// notAllowed is what is recorded of a message that capture refuses.
const notAllowed = "not in allow_recipients"

// welcome reports whether a message leaves although its address is suppressed: who
// wanted nothing at all has asked for this one.
func welcome(asked bool, why string) bool { return asked && why == registry.NotWanted }

// suppressedFor is what traces say of a message to an address on the suppression list.
func suppressedFor(why string) string { return "the address is on the suppression list: " + why }

// wanted refuses what nobody wants any more, and what tells of something that
// somebody does not want any more.
func wanted(job *deliver.Job, live func(fanfare.RowID) bool) (deliver.Decision, string) {
	if len(job.Subscriptions) == 0 { // of an audience: there is nothing that could have been ended
		return deliver.Go, ""
	}
	left := 0
	for _, place := range job.Subscriptions {
		if live(place) {
			if left++; !job.RequiresAll {
				return deliver.Go, ""
			}
		}
	}
	switch left {
	case 0:
		return deliver.Suppress, unsubscribed
	case len(job.Subscriptions):
		return deliver.Go, ""
	}
	return deliver.Reload, ""
}
