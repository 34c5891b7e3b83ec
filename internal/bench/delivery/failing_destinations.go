package delivery

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// A destinationMix has the destinations of F1: of each hundred one is dead, one is slow,
// and one refuses requests above a rate of its own.
type destinationMix struct {
	web          bool // receivers of webhooks rather than domains of mail
	destinations int
	each         int    // messages for a destination
	port         string // of the webhooks
}

// The states of a destination.
const (
	healthyDestination = iota
	deadDestination
	slowDestination
	limitedDestination
)

// Of the failing destinations: the delay of a slow one, and the rate of a limited one.
const (
	slowAnswer  = 2 * time.Second
	busyRate    = 1
	oneOfEachIn = 100 // destinations, one of each kind
)

func (destinationMix) state(destination int) int {
	if c := destination%oneOfEachIn + 1; c <= limitedDestination {
		return c
	}
	return healthyDestination
}

// healthy returns the number of messages to healthy destinations.
func (t destinationMix) healthy() (n int) {
	for d := range t.destinations {
		if t.state(d) == healthyDestination {
			n += t.each
		}
	}
	return n
}

var stateNames = [...]string{"well", "dead", "slow", "busy"}

// address returns the address of one recipient at a destination.
func (t destinationMix) address(destination, i int) string {
	c := t.state(destination)
	if !t.web {
		return fmt.Sprintf("p%d@%s%05d.example", i, stateNames[c], destination)
	}
	// 127.2.*: accepts no data, 127.3.*: slow, 127.4.*: limited, 127.5.*: refuses connections
	net := c + 1
	if c == deadDestination && destination/oneOfEachIn%2 == 1 {
		net = limitedDestination + 2
	}
	return fmt.Sprintf("http://127.%d.%d.%d:%s/p%d", net, destination/200, destination%200+1, t.port, i)
}

// sinkRules returns the rules by which the sink treats the destinations.
func (t destinationMix) sinkRules() []string {
	if !t.web {
		return []string{"dead*=refuse", fmt.Sprintf("slow*=%v", slowAnswer), fmt.Sprintf("busy*=%d/s", busyRate)}
	}
	return []string{"127.2.*=hang", fmt.Sprintf("127.3.*=%v", slowAnswer), fmt.Sprintf("127.4.*=%d/s", busyRate), "127.5.*=refuse"}
}

// lines writes the file of the subscriptions. Failing destinations are included if sick
// is set.
func (t destinationMix) lines(l *harness.Env, path string, sick bool) (subscriptions int, err error) {
	_, err = loadgen.WriteLines(path, t.destinations*t.each, func(dst []byte, i int) []byte {
		destination := i % t.destinations // so that the messages of one are spread over the broadcast
		if !sick && t.state(destination) != healthyDestination {
			return dst
		}
		subscriptions++
		dst = fmt.Appendf(dst, `{"topic":"news","channel":"email","to":%q,"filter":%q,"data":{"link":"`, t.address(destination, i/t.destinations), loadgen.NotifyFilter)
		return append(loadgen.Person(i).AppendLink(dst, l.Seed), "\"}}\n"...)
	})
	return subscriptions, err
}

func (t destinationMix) channel(relay string) loadgen.Channel {
	if t.web {
		return loadgen.Channel{Driver: "driver: webhook, allow_http: true, send_timeout: 5s", Retry: "5s, 30s", Connections: 200}
	}
	return loadgen.Channel{Relay: relay, Retry: "5s, 30s"}
}

// A destinationRun is the result of a broadcast to a mix of destinations, for the
// healthy ones.
type destinationRun struct {
	perSecond float64       // to healthy destinations, from the kept event to the last of them at the sink
	mostAfter time.Duration // from the acceptance until a read showed 99 % of them
	harness.WindowUsage
	sum sink.Summary
}

// sendToDestinations sends a broadcast until the healthy destinations have their
// messages, and then stops the server, since retries to the others would go on for long.
func sendToDestinations(l *harness.Env, t destinationMix, name string, sick bool, w *report.Checks) (v destinationRun, err error) {
	mailSink, err := l.OpenSink(harness.SinkOptions{Hosts: t.sinkRules(), Web: true})
	if err != nil {
		return v, err
	}
	t.port = mailSink.Port
	s, err := l.StartServer(name, "--allow-networks", "127.0.0.0/8")
	if err != nil {
		return v, err
	}
	lines := l.File(name + ".ndjson")
	subscriptions, err := t.lines(l, lines, sick)
	if err != nil {
		return v, err
	}
	put, _, err := s.Fill(t.channel(mailSink.Addr).Configuration(loadgen.Service), lines)
	if err != nil {
		return v, err
	}
	w.Require(put.Created == int64(subscriptions), "%d of %d subscriptions were created", put.Created, subscriptions)
	if err := s.ToggleProfile(); err != nil {
		return v, err
	}
	window := s.OpenWindow(mailSink)
	accepted, err := s.API.Publish(l.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return v, err
	}
	most, err := awaitHealthy(mailSink, s, t.healthy())
	if err != nil {
		return v, err
	}
	durable, err := awaitOutcomes(mailSink, s, accepted.ID)
	if err != nil {
		return v, err
	}
	v.WindowUsage = window.Close()
	if err := s.ToggleProfile(); err != nil {
		return v, err
	}
	b, err := s.API.Event(l.Ctx, accepted.ID)
	if err != nil {
		return v, err
	}
	v.perSecond, v.mostAfter = float64(t.healthy())/durable.Sub(b.Stages.Kept).Seconds(), most.Sub(b.Stages.Kept)
	if err := s.Stop(); err != nil {
		return v, err
	}
	v.sum, err = mailSink.Finish()
	return v, err
}

// awaitHealthy waits until the destinations without a rule have a number of messages,
// and returns when it saw 99 % of them.
func awaitHealthy(p *harness.Sink, s *harness.Server, messages int) (most time.Time, err error) {
	bar := s.Env.Progress("broadcast", int64(messages))
	defer bar.End()
	var still harness.StallDetector
	began := time.Now()
	for {
		sum, err := p.Summary(s.Env.Ctx)
		if err != nil {
			return most, err
		}
		well := sum.Hosts[len(sum.Hosts)-1]
		bar.Set(well.Messages)
		if most.IsZero() && 100*well.Messages >= 99*int64(messages) {
			most = time.Now()
		}
		if well.Messages >= int64(messages) {
			return most, nil
		}
		if err := still.Check(well.Messages); err != nil {
			return most, s.WithLog(err)
		}
		if err := harness.Pause(s.Env.Ctx, harness.PollPause(time.Since(began), well.Messages, int64(messages))); err != nil {
			return most, err
		}
	}
}

// awaitOutcomes waits until the server has as many durable outcomes as the sink has
// messages now, and returns when that was seen. The server commits outcomes in the
// order of the answers, so these are the outcomes of those messages.
func awaitOutcomes(p *harness.Sink, s *harness.Server, event string) (time.Time, error) {
	sum, err := p.Summary(s.Env.Ctx)
	if err != nil {
		return time.Time{}, err
	}
	var still harness.StallDetector
	for {
		b, err := s.API.Event(s.Env.Ctx, event)
		now := time.Now()
		if err != nil {
			return now, err
		}
		if b.Counts[fanfare.Accepted] >= sum.Unique {
			return now, nil
		}
		if err := still.Check(b.Counts[fanfare.Accepted]); err != nil {
			return now, s.WithLog(err)
		}
		if err := harness.Pause(s.Env.Ctx, harness.ShortestPoll); err != nil {
			return now, err
		}
	}
}

// RunFailingDestinations is F1 by webhooks, and F1m by mail.
func RunFailingDestinations(web bool) func(l *harness.Env, r *report.Record) error {
	return func(l *harness.Env, r *report.Record) error {
		t := destinationMix{web: web, destinations: l.Size(10_000, 200), each: 50}
		r.Unit = "messages/s"
		r.Params["destinations"], r.Params["messages"], r.Params["sink"] = t.destinations, t.destinations*t.each, "builtin"
		var w report.Checks
		alone, err := sendToDestinations(l, t, "healthy", false, &w)
		if err != nil {
			return err
		}
		l.Say("the healthy destinations alone: %s messages/s", report.Figure(alone.perSecond))
		all, err := sendToDestinations(l, t, "all", true, &w)
		if err != nil {
			return err
		}
		harness.RecordUsage(r, all.WindowUsage)
		r.Value = all.perSecond
		r.SetLimit(alone.perSecond)
		r.AddSeries("healthy destinations alone", alone.sum.Over)
		r.AddSeries("with failing destinations", all.sum.Over)
		r.Note("messages to healthy destinations; the limit is the same without the failing destinations (goal: a ratio of 0.95)")
		r.Note("99 %% of them arrived after %.2f s (polled), without the failing destinations after %.2f s", all.mostAfter.Seconds(), alone.mostAfter.Seconds())
		for _, h := range all.sum.Hosts[:len(all.sum.Hosts)-1] {
			r.Note("%s: %d messages accepted and %d refused by then", h.Host, h.Messages, h.Refused)
		}
		for _, v := range []destinationRun{alone, all} {
			r.Lost += int64(t.healthy()) - v.sum.Hosts[len(v.sum.Hosts)-1].Messages
			r.Duplicates += v.sum.Duplicates
		}
		w.Require(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
		return w.Err()
	}
}
