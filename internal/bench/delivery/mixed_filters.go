package delivery

import (
	"bytes"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
	"fanfare.dev/fanfare/internal/sink"
)

// The differences of N1b from N1.
const (
	differentFilters = 10_000
	threeOf          = 10 // every tenth person has three subscriptions
	tempFailShare    = 0.02
	permFailShare    = 0.01
)

// mixedLine appends a subscription of N1b. Its filter is one of many different ones, all
// of which match the event.
func mixedLine(dst []byte, p loadgen.Person, i int, seed uint64) []byte {
	number := loadgen.Mix(seed^uint64(p)<<2^uint64(i)) % differentFilters
	filter := fmt.Sprintf("contains_ci(title,'vancouver') || contains_ci(description,'place %04d')", number)
	if i > 0 {
		filter = fmt.Sprintf("contains_ci(title,'victoria') && !contains_ci(title,'place %04d %d')", number, i)
	}
	return loadgen.AppendSubscription(dst, p, seed, filter)
}

// mixedPeople writes the input of N1b and returns the number of its lines.
func mixedPeople(l *harness.Env, path string, people int) (subs int, err error) {
	_, err = loadgen.WriteLines(path, people, func(dst []byte, i int) []byte {
		each := 1
		if i%threeOf == 0 {
			each = 3
		}
		for k := range each {
			dst = mixedLine(dst, loadgen.Person(i), k, l.Seed)
		}
		subs += each
		return dst
	})
	return subs, err
}

// RunMixed is N1b.
func RunMixed(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	if l.Sink != "builtin" {
		r.Note("the sink is the built-in one, because no other can be configured to refuse emails")
		l.Sink = "builtin"
	}
	var w report.Checks
	plain, err := plainRate(l, n, &w)
	if err != nil {
		return err
	}
	l.Say("N1 in this run: %s mails/s", report.Figure(plain))

	input, came := l.File("mixed.ndjson"), l.File("came.tsv")
	subs, err := mixedPeople(l, input, n)
	if err != nil {
		return err
	}
	r.Params["people"], r.Params["subscriptions"], r.Params["filters"], r.Params["4xx"], r.Params["5xx"] = n, subs, differentFilters, tempFailShare, permFailShare
	var failed []fanfare.Delivery
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{
		Data: "N1b", Lines: input, Subscriptions: subs, Retry: "1s, 1s, 1s",
		Sink: harness.SinkOptions{Record: came, Inject: sink.Inject{Seed: l.Seed, TempFail: tempFailShare, PermFail: permFailShare}},
		Inspect: func(s *harness.Server, b *harness.SentBroadcast) (err error) {
			failed, err = failures(s, b.Event)
			return err
		},
	}, r, &w)
	if err != nil {
		return err
	}
	b.AddStagesTo(r)
	r.AddStage("accepted to last first attempt (polled)", b.FirstAttempts)
	r.Value = float64(n) / b.FirstAttempts.Seconds()
	harness.RecordUsage(r, b.WindowUsage)
	r.RSSMiB, r.CPUMicros = b.WholePeakMiB, report.MicrosPer(b.Server, n)
	r.SetLimit(plain)
	r.Note("the limit is N1 in the same run; until the last retry: %s mails/s", report.Figure(float64(n)/b.Durable().Seconds()))
	r.Note("%d replies 4xx, %d replies 5xx; CPU for a mail: server %.1f us, sink %.1f us", sum.Rejected4xx, sum.Rejected5xx, report.MicrosPer(b.Server, n), report.MicrosPer(b.Sink, n))
	w.Require(p.Builtin && sum.Rejected5xx == int64(len(failed)), "%d deliveries failed, but the sink refused %d permanently", len(failed), sum.Rejected5xx)
	w.Require(b.Counts[fanfare.Failed] == int64(len(failed)), "the counts have %d failed deliveries, the list has %d", b.Counts[fanfare.Failed], len(failed))
	w.Require(b.Matched == int64(subs) && b.Messages == int64(n), "%d subscriptions matched and there are %d messages, expected %d and %d", b.Matched, b.Messages, subs, n)
	r.Lost, r.Duplicates, err = account(input, came, failed, n)
	if err != nil {
		return err
	}
	w.Require(r.Lost == 0, "%d people got no mail although the sink did not refuse them", r.Lost)
	w.Require(r.Duplicates == 0, "%d mails arrived more than once", r.Duplicates)
	return w.Err()
}

// plainRate returns the rate of N1 in this run.
func plainRate(l *harness.Env, n int, w *report.Checks) (float64, error) {
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return 0, err
	}
	var aside report.Record
	b, _, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: "N1", Lines: lines, Subscriptions: n, Retry: "1s"}, &aside, w)
	if err != nil {
		return 0, err
	}
	w.Require(sum.Unique == int64(n) && sum.Duplicates == 0, "N1 in the same run reached %d of %d people, with %d duplicates", sum.Unique, n, sum.Duplicates)
	return float64(n) / b.Durable().Seconds(), nil
}

// failures lists the deliveries of an event that failed.
func failures(s *harness.Server, event string) ([]fanfare.Delivery, error) {
	var all []fanfare.Delivery
	q := client.DeliveryQuery{State: fanfare.Failed.String(), Limit: 1000}
	for {
		page, err := s.API.Deliveries(s.Env.Ctx, event, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Deliveries...)
		if q.Cursor = page.Next; q.Cursor == "" {
			return all, nil
		}
	}
}

// account compares the record of the sink with the input: each person has one mail, or a
// failed delivery.
func account(input, came string, failed []fanfare.Delivery, people int) (lost, twice int64, err error) {
	got := make([]uint8, people)
	count := func(address []byte) error {
		p, ok := loadgen.ParsePerson(address)
		if !ok || int(p) >= people {
			return fmt.Errorf("the sink recorded a message to %q, but this address is not in the input", address)
		}
		if got[p] < 255 {
			got[p]++
		}
		return nil
	}
	err = loadgen.EachLine(came, func(line []byte) error {
		fields := bytes.Split(line, []byte{'\t'})
		if len(fields) != 4 {
			return fmt.Errorf("the record of the sink has an invalid line: %q", line)
		}
		return count(fields[2])
	})
	if err != nil {
		return 0, 0, err
	}
	for i := range failed {
		if err := count([]byte(failed[i].Address)); err != nil {
			return 0, 0, err
		}
	}
	wanted := make([]bool, people)
	err = loadgen.EachLine(input, func(line []byte) error {
		_, rest, _ := bytes.Cut(line, []byte(`"to":"`))
		address, _, _ := bytes.Cut(rest, []byte{'"'})
		p, ok := loadgen.ParsePerson(address)
		if !ok {
			return fmt.Errorf("the input has an invalid line: %q", line)
		}
		wanted[p] = true
		return nil
	})
	for p, n := range got {
		switch {
		case wanted[p] && n == 0:
			lost++
		case wanted[p]:
			twice += int64(n) - 1
		default:
			twice += int64(n)
		}
	}
	return lost, twice, err
}
