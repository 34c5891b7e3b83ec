package bench

import (
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// A town is the destinations of F1: of each hundred one is dead, one slow, and one
// refuses by a rate of its own.
type town struct {
	web          bool // receivers of webhooks rather than domains of mail
	destinations int
	each         int    // messages for a destination
	port         string // of webhooks
}

// What becomes of a destination.
const (
	wellDestination = iota
	deadDestination
	slowDestination
	busyDestination
)

// Of the sick: how long a slow one takes, and what a busy one takes in a second.
const (
	slowAnswer = 2 * time.Second
	busyRate   = 1
	sickOf     = 100 // destinations, one of each kind
)

func (town) condition(destination int) int {
	if c := destination%sickOf + 1; c <= busyDestination {
		return c
	}
	return wellDestination
}

// healthy is how many messages are for destinations that are well.
func (t town) healthy() (n int) {
	for d := range t.destinations {
		if t.condition(d) == wellDestination {
			n += t.each
		}
	}
	return n
}

var conditionNames = [...]string{"well", "dead", "slow", "busy"}

// address is that of one recipient at a destination.
func (t town) address(destination, i int) string {
	c := t.condition(destination)
	if !t.web {
		return fmt.Sprintf("p%d@%s%05d.example", i, conditionNames[c], destination)
	}
	// 127.2.*: dead and quiet, 127.3.*: slow, 127.4.*: busy, 127.5.*: dead and refusing
	net := c + 1
	if c == deadDestination && destination/sickOf%2 == 1 {
		net = busyDestination + 2
	}
	return fmt.Sprintf("http://127.%d.%d.%d:%s/p%d", net, destination/200, destination%200+1, t.port, i)
}

// behaviour is the sink's.
func (t town) behaviour() []string {
	if !t.web {
		return []string{"dead*=refuse", fmt.Sprintf("slow*=%v", slowAnswer), fmt.Sprintf("busy*=%d/s", busyRate)}
	}
	return []string{"127.2.*=hang", fmt.Sprintf("127.3.*=%v", slowAnswer), fmt.Sprintf("127.4.*=%d/s", busyRate), "127.5.*=refuse"}
}

// lines makes the file of the subscriptions, those of the sick only where asked.
func (t town) lines(l *lab, path string, sick bool) (subscriptions int, err error) {
	_, err = writeLines(path, t.destinations*t.each, func(dst []byte, i int) []byte {
		destination := i % t.destinations // so that those of one are spread over the broadcast
		if !sick && t.condition(destination) != wellDestination {
			return dst
		}
		subscriptions++
		dst = fmt.Appendf(dst, `{"topic":"news","channel":"email","to":%q,"filter":%q,"data":{"link":"`, t.address(destination, i/t.destinations), notifyFilter)
		return append(person(i).appendLink(dst, l.Seed), "\"}}\n"...)
	})
	return subscriptions, err
}

func (t town) way(relay string) way {
	if t.web {
		return way{driver: "driver: webhook, allow_http: true, send_timeout: 5s", retry: "5s, 30s", connections: 200}
	}
	return way{relay: relay, retry: "5s, 30s"}
}

// A visit is a broadcast to a town, as far as its healthy destinations had theirs.
type visit struct {
	perSecond float64       // to healthy destinations, from the kept event to the last of them at the sink
	most      time.Duration // from the kept event until a poll saw 99 % of them
	toll
	sum sink.Summary
}

// visit broadcasts until the healthy have theirs, and ends the server then: the sick
// would keep it busy for as long as their retries go on.
func (l *lab) visit(t town, name string, sick bool, w *wrong) (v visit, err error) {
	box, err := l.openPost(postSpec{hosts: t.behaviour(), web: true})
	if err != nil {
		return v, err
	}
	t.port = box.port
	s, err := l.serve(name, "--allow-networks", "127.0.0.0/8")
	if err != nil {
		return v, err
	}
	lines := l.file(name + ".ndjson")
	subscriptions, err := t.lines(l, lines, sick)
	if err != nil {
		return v, err
	}
	put, _, err := s.fillWith(t.way(box.addr).configuration(service), lines)
	if err != nil {
		return v, err
	}
	w.unless(put.Created == int64(subscriptions), "%d of %d subscriptions were created", put.Created, subscriptions)
	if err := s.toggleProfile(); err != nil {
		return v, err
	}
	window := s.openWindow(box)
	accepted, err := s.api.Publish(l.ctx, "news", newsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return v, err
	}
	most, err := box.awaitHealthy(s, t.healthy())
	if err != nil {
		return v, err
	}
	durable, err := box.awaitOutcomes(s, accepted.ID)
	if err != nil {
		return v, err
	}
	v.toll = window.close()
	if err := s.toggleProfile(); err != nil {
		return v, err
	}
	b, err := s.api.Event(l.ctx, accepted.ID)
	if err != nil {
		return v, err
	}
	v.perSecond, v.most = float64(t.healthy())/durable.Sub(b.Stages.Kept).Seconds(), most.Sub(b.Stages.Kept)
	if err := s.stop(); err != nil {
		return v, err
	}
	v.sum, err = box.end()
	return v, err
}

// awaitHealthy waits until those without a rule have so many messages, and tells when
// it saw 99 % of them.
func (p *post) awaitHealthy(s *server, messages int) (most time.Time, err error) {
	bar := s.lab.bar("broadcast", int64(messages))
	defer bar.end()
	var still stall
	began := time.Now()
	for {
		sum, err := p.soFar(s.lab.ctx)
		if err != nil {
			return most, err
		}
		well := sum.Hosts[len(sum.Hosts)-1]
		bar.set(well.Messages)
		if most.IsZero() && 100*well.Messages >= 99*int64(messages) {
			most = time.Now()
		}
		if well.Messages >= int64(messages) {
			return most, nil
		}
		if err := still.moved(well.Messages); err != nil {
			return most, s.failed(err)
		}
		if err := pause(s.lab.ctx, pollPause(time.Since(began), well.Messages, int64(messages))); err != nil {
			return most, err
		}
	}
}

// awaitOutcomes waits until the server has as many durable outcomes as the sink has
// messages now, and returns when that was seen. The server commits outcomes in the
// order of the answers, so these are the outcomes of those messages.
func (p *post) awaitOutcomes(s *server, event string) (time.Time, error) {
	sum, err := p.soFar(s.lab.ctx)
	if err != nil {
		return time.Time{}, err
	}
	var still stall
	for {
		b, err := s.api.Event(s.lab.ctx, event)
		now := time.Now()
		if err != nil {
			return now, err
		}
		if b.Counts[fanfare.Accepted] >= sum.Unique {
			return now, nil
		}
		if err := still.moved(b.Counts[fanfare.Accepted]); err != nil {
			return now, s.failed(err)
		}
		if err := pause(s.lab.ctx, shortestPoll); err != nil {
			return now, err
		}
	}
}

// runTown is F1 by webhooks, and F1m by mail.
func runTown(web bool) func(l *lab, r *Record) error {
	return func(l *lab, r *Record) error {
		t := town{web: web, destinations: l.size(10_000, 200), each: 50}
		r.Unit = "messages/s"
		r.Params["destinations"], r.Params["messages"], r.Params["sink"] = t.destinations, t.destinations*t.each, "builtin"
		var w wrong
		alone, err := l.visit(t, "healthy", false, &w)
		if err != nil {
			return err
		}
		l.say("the healthy alone: %s messages/s", figure(alone.perSecond))
		all, err := l.visit(t, "all", true, &w)
		if err != nil {
			return err
		}
		r.take(all.toll)
		r.Value = all.perSecond
		r.limit(alone.perSecond)
		r.over("the healthy alone", alone.sum.Over)
		r.over("with the sick", all.sum.Over)
		r.note("messages to destinations that are well; the limit is the same without those that are sick (goal: a ratio of 0.95)")
		r.note("99 %% of them had theirs after %.2f s (polled), without the sick after %.2f s", all.most.Seconds(), alone.most.Seconds())
		for _, h := range all.sum.Hosts[:len(all.sum.Hosts)-1] {
			r.note("%s: %d messages taken, %d refused until then", h.Host, h.Messages, h.Refused)
		}
		for _, v := range []visit{alone, all} {
			r.Lost += int64(t.healthy()) - v.sum.Hosts[len(v.sum.Hosts)-1].Messages
			r.Duplicates += v.sum.Duplicates
		}
		w.unless(r.Lost == 0 && r.Duplicates == 0, "%d lost, %d duplicates", r.Lost, r.Duplicates)
		return w.err()
	}
}
