package dispatch

import (
	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/people/suppression"
	"fanfare.dev/fanfare/internal/pipeline/deliver"
)

// gate decides about each message of one channel immediately before it is sent.
type gate struct {
	*Stage
	channel uint16
}

// Gate returns the deliver.Gate of a channel.
func (s *Stage) Gate(channel uint16) deliver.Gate { return &gate{s, channel} }

// notAllowed is the recorded reason of a message that Options.Refuses.
const notAllowed = "not in allow_recipients"

// Check refuses messages that are paused or cancelled, and those whose recipients no longer
// want them.
func (g *gate) Check(job *deliver.Job) (deliver.Decision, string) {
	channel, ok := g.Registry.Channel(g.channel)
	if !ok {
		return deliver.Cancel, deliver.ChannelDeleted
	}
	event := fanfare.EventRef{Day: job.Message.Delivery.Day, Seq: job.Message.Delivery.Manifest.Event()}
	if decision, reason := g.Control.Decide(event, channel); decision != deliver.Go {
		return decision, reason
	}
	if g.Refuses(job.Message.To) {
		return deliver.Suppress, notAllowed
	}
	if reason := suppressing(g.Registry, channel, job.Message.To, job.Requested, &job.GateState); reason != "" {
		return deliver.Suppress, reason
	}
	return checkSubscriptions(job, g.Registry.Live)
}

// suppressing returns the recorded reason if the suppression list forbids a message to an address,
// or "". A recipient who refuses all mail still gets a message that they have just requested.
func suppressing(r *registry.Registry, channel *catalog.Channel, to string, asked bool, seen *uint64) string {
	reason := r.SuppressionReason(channel, to, seen)
	if reason == "" || asked && reason == suppression.ReasonUnsubscribed {
		return ""
	}
	return "the address is on the suppression list: " + reason
}

// checkSubscriptions refuses a message if its subscriptions have ended. A digest that includes an
// ended subscription in addition to others is written again.
func checkSubscriptions(job *deliver.Job, live func(fanfare.RowID) bool) (deliver.Decision, string) {
	if len(job.Subscriptions) == 0 { // a message to listed recipients
		return deliver.Go, ""
	}
	left := 0
	for _, id := range job.Subscriptions {
		if live(id) {
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
