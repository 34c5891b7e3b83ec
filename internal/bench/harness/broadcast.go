package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// CheckSink compares the mails that arrived at the sink with those that must have
// arrived.
func CheckSink(r *report.Record, p *Sink, sum sink.Summary, mails int, w *report.Checks) {
	switch {
	case p.Builtin:
		r.Lost, r.Duplicates = int64(mails)-sum.Unique, sum.Duplicates
	case p.Process != nil:
		r.Lost = int64(mails) - sum.Messages
		r.Note("this sink counts emails, not recipients: the number of lost messages is a difference of totals, and duplicates cannot be detected")
	default:
		r.Note("the mails that arrived at the sink %s are not counted", p.Addr)
	}
	w.Require(r.Lost == 0, "%d lost", r.Lost)
	w.Require(r.Duplicates == 0, "%d duplicates", r.Duplicates)
}

// FillFor configures the server to send to relay and imports the subscriptions of a
// file.
func (s *Server) FillFor(relay, lines string) (client.PutSummary, time.Duration, error) {
	return s.Fill(loadgen.Configuration(relay, "1s"), lines)
}

func (s *Server) Fill(document []byte, lines string) (sum client.PutSummary, took time.Duration, err error) {
	if _, err := s.API.Apply(s.Env.Ctx, document, false); err != nil {
		return sum, 0, err
	}
	return s.ImportFile(lines)
}

func (s *Server) ImportFile(path string) (sum client.PutSummary, took time.Duration, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return sum, 0, err
	}
	bar := s.Env.Progress("import", info.Size())
	defer bar.End()
	started := time.Now()
	sum, err = s.API.ImportSubscriptions(s.Env.Ctx, f, func(p client.Progress) { bar.Set(p.Bytes) })
	return sum, time.Since(started), err
}

// A SentBroadcast is a broadcast that was observed from its 202 to its last outcome.
type SentBroadcast struct {
	Completion
	accepted      time.Time     // when the 202 was read
	FirstAttempts time.Duration // from the acceptance until a read showed an attempt for every delivery
	WindowUsage                 // while the clock ran
	WholePeakMiB  float64       // of the server, since its start
	Commits       float64       // transactions that stored outcomes
}

// Broadcast publishes the event that every subscription matches and waits until all
// deliveries are settled. If amid is not nil, it runs during the broadcast.
func (s *Server) Broadcast(p *Sink, amid func(context.Context, *Server) error) (SentBroadcast, error) {
	var out SentBroadcast
	if err := s.ToggleProfile(); err != nil {
		return out, err
	}
	commits, err := s.Metric(CommitsMetric)
	if err != nil {
		return out, err
	}
	out.WholePeakMiB = s.Used().PeakMiB
	s.ResetPeak()
	window := s.OpenWindow(p)
	bar := s.Env.Progress("broadcast", 0)
	defer bar.End()
	event, err := s.API.Publish(s.Env.Ctx, "news", loadgen.NewsOfTheDay(), client.PublishOptions{})
	if err != nil {
		return out, err
	}
	out.accepted = time.Now()
	end := s.runBeside(amid)
	out.Completion, err = s.WaitCompleted(event.ID, func(b *fanfare.Broadcast) {
		bar.SetOf(b.Counts.Settled(), b.Messages)
		if out.FirstAttempts == 0 && b.Messages > 0 && b.Counts[fanfare.Pending] == 0 {
			out.FirstAttempts = time.Since(b.Stages.Kept)
		}
	})
	if err = errors.Join(err, end()); err != nil {
		return out, err
	}
	if out.FirstAttempts == 0 {
		out.FirstAttempts = out.Durable()
	}
	out.WindowUsage = window.Close()
	if out.Commits, err = s.Metric(CommitsMetric); err != nil {
		return out, err
	}
	out.Commits -= commits
	out.WholePeakMiB = max(out.WholePeakMiB, out.PeakMiB)
	return out, s.ToggleProfile()
}

// runBeside runs amid in the background until end is called.
func (s *Server) runBeside(amid func(context.Context, *Server) error) (end func() error) {
	if amid == nil {
		return func() error { return nil }
	}
	ctx, cancel := context.WithCancel(s.Env.Ctx)
	over := make(chan error, 1)
	go func() { over <- amid(ctx, s) }()
	return func() error {
		cancel()
		return <-over
	}
}

// AddStagesTo adds the durations of the stages to a record, each from the acceptance of
// the event.
func (s *SentBroadcast) AddStagesTo(r *report.Record) {
	at := func(name string, t time.Time) { r.AddStage(name, t.Sub(s.Stages.Kept)) }
	r.AddStage("received to 202 read", s.accepted.Sub(s.Stages.Received))
	at("accepted to matched", s.Stages.Matched)
	at("accepted to manifests durable (polled)", s.ManifestsAt)
	at("accepted to first outcome durable (polled)", s.FirstAt)
	at("accepted to last outcome durable (polled)", s.DurableAt)
}

// A BroadcastPlan says how a broadcast is prepared, sent and inspected.
type BroadcastPlan struct {
	Data          string // name of the data directory
	Lines         string // file of the subscriptions
	Subscriptions int    // in that file
	Retry         string
	Sink          SinkOptions
	Args          []string // further arguments of the server

	Start    func() (*Server, error)              // starts the server; nil: StartServer
	LinesFor func(*Sink) (string, error)          // makes the file if it depends on the sink; nil: Lines
	Config   func(relay string) []byte            // makes the document; nil: that of most experiments
	Prepare  func(*Server) error                  // before the clock starts; nil: nothing
	Beside   func(context.Context, *Server) error // runs during the broadcast until its ctx ends; nil: nothing
	Inspect  func(*Server, *SentBroadcast) error  // while the server still runs; nil: nothing
}

// SendBroadcast starts a server and a sink, imports the subscriptions, sends the
// broadcast, and stops both.
func (l *Env) SendBroadcast(p BroadcastPlan, r *report.Record, w *report.Checks) (*SentBroadcast, *Sink, sink.Summary, error) {
	var sum sink.Summary
	mailSink, err := l.OpenSink(p.Sink)
	if err != nil {
		return nil, nil, sum, err
	}
	if p.Start == nil {
		p.Start = func() (*Server, error) { return l.StartServer(p.Data, p.Args...) }
	}
	s, err := p.Start()
	if err != nil {
		return nil, nil, sum, err
	}
	if p.LinesFor != nil {
		if p.Lines, err = p.LinesFor(mailSink); err != nil {
			return nil, nil, sum, err
		}
	}
	document := loadgen.Configuration(mailSink.Addr, p.Retry)
	if p.Config != nil {
		document = p.Config(mailSink.Addr)
	}
	put, took, err := s.Fill(document, p.Lines)
	if err != nil {
		return nil, nil, sum, err
	}
	r.AddStage("import", took)
	l.Say("imported %s subscriptions, %s/s", report.Thousands(put.Created), report.Figure(float64(p.Subscriptions)/took.Seconds()))
	w.Require(put.Created == int64(p.Subscriptions) && put.Failed == 0, "%d of %d subscriptions were created, %d failed", put.Created, p.Subscriptions, put.Failed)
	if p.Prepare != nil {
		if err := p.Prepare(s); err != nil {
			return nil, nil, sum, err
		}
	}
	b, err := s.Broadcast(mailSink, p.Beside)
	if err != nil {
		return nil, nil, sum, s.WithLog(err)
	}
	l.Say("sent %s mails in %.2f s", report.Thousands(b.Messages), b.Durable().Seconds())
	if p.Inspect != nil {
		if err := p.Inspect(s, &b); err != nil {
			return nil, nil, sum, err
		}
	}
	if err := s.Stop(); err != nil {
		return nil, nil, sum, err
	}
	sum, err = mailSink.Finish()
	return &b, mailSink, sum, err
}

// NotifyPeople writes a file of n people who all have NotifyBC's filter.
func (l *Env) NotifyPeople(n int) (path string, err error) {
	path = l.File("people.ndjson")
	_, err = loadgen.WriteLines(path, n, func(dst []byte, i int) []byte {
		return loadgen.AppendSubscription(dst, loadgen.Person(i), l.Seed, loadgen.NotifyFilter)
	})
	return path, err
}

// StartFilled starts a sink and a server and imports the subscriptions of a file.
func (l *Env) StartFilled(configure func(relay, retry string) []byte, data, lines string) (*Sink, *Server, error) {
	mailSink, err := l.OpenSink(SinkOptions{})
	if err != nil {
		return nil, nil, err
	}
	s, err := l.StartServer(data)
	if err != nil {
		return nil, nil, err
	}
	return mailSink, s, s.FillCompletely(configure(mailSink.Addr, "1s"), lines)
}

// FillCompletely is Fill, and fails if a subscription is refused.
func (s *Server) FillCompletely(document []byte, lines string) error {
	put, _, err := s.Fill(document, lines)
	if err == nil && put.Failed > 0 {
		err = fmt.Errorf("%d subscriptions failed: %+v", put.Failed, put.Errors[0])
	}
	return err
}

// Populate imports n subscriptions whose lines are made during the import.
func (s *Server) Populate(n int, line func(dst []byte, i int) []byte) (time.Duration, error) {
	const body = 4_000_000 // lines of one request, which may have 4 GiB
	bar := s.Env.Progress("base", int64(n))
	defer bar.End()
	started := time.Now()
	for from := 0; from < n; from += body {
		at, to := from, min(from+body, n)
		lines := &loadgen.LineReader{Next: func(dst []byte) []byte {
			if at < to {
				dst = line(dst, at)
				at++
			}
			return dst
		}}
		put, err := s.API.ImportSubscriptions(s.Env.Ctx, lines, func(p client.Progress) { bar.Set(int64(from) + p.Lines) })
		if err != nil {
			return 0, err
		}
		if put.Failed > 0 {
			return 0, fmt.Errorf("%d subscriptions failed: %+v", put.Failed, put.Errors[0])
		}
	}
	return time.Since(started), nil
}
