package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/sink"
)

// What is different in N1b.
const (
	differentFilters = 10_000
	threeOf          = 10 // every tenth person has three subscriptions
	tempFailShare    = 0.02
	permFailShare    = 0.01
)

// mixedLine appends the i-th subscription of N1b: one of many different filters,
// all of which want the news.
func mixedLine(dst []byte, p person, turn int, seed uint64) []byte {
	number := mix(seed^uint64(p)<<2^uint64(turn)) % differentFilters
	filter := fmt.Sprintf("contains_ci(title,'vancouver') || contains_ci(description,'place %04d')", number)
	if turn > 0 {
		filter = fmt.Sprintf("contains_ci(title,'victoria') && !contains_ci(title,'place %04d %d')", number, turn)
	}
	return appendSubscription(dst, p, seed, filter)
}

// mixedPeople writes the input of N1b and returns how many lines it has.
func (l *lab) mixedPeople(path string, people int) (subs int, err error) {
	_, err = writeLines(path, people, func(dst []byte, i int) []byte {
		turns := 1
		if i%threeOf == 0 {
			turns = 3
		}
		for turn := range turns {
			dst = mixedLine(dst, person(i), turn, l.Seed)
		}
		subs += turns
		return dst
	})
	return subs, err
}

// runMixed is N1b.
func runMixed(l *lab, r *Record) error {
	n := l.size(1_000_000, 1000)
	r.Unit = "mails/s"
	if l.Sink != "builtin" {
		r.note("the sink is the built-in one: no other refuses on purpose")
		l.Sink = "builtin"
	}
	var w wrong
	plain, err := l.plainRate(n, &w)
	if err != nil {
		return err
	}
	l.say("N1 in this run: %s mails/s", figure(plain))

	input, came := l.file("mixed.ndjson"), l.file("came.tsv")
	subs, err := l.mixedPeople(input, n)
	if err != nil {
		return err
	}
	r.Params["people"], r.Params["subscriptions"], r.Params["filters"], r.Params["4xx"], r.Params["5xx"] = n, subs, differentFilters, tempFailShare, permFailShare
	var failed []fanfare.Delivery
	b, p, sum, err := l.send(plan{
		data: "N1b", lines: input, subs: subs, retry: "1s, 1s, 1s",
		post: postSpec{record: came, inject: sink.Inject{Seed: l.Seed, TempFail: tempFailShare, PermFail: permFailShare}},
		inspect: func(s *server, b *sending) (err error) {
			failed, err = s.failures(b.Event)
			return err
		},
	}, r, &w)
	if err != nil {
		return err
	}
	b.stagesInto(r)
	r.stage("kept to last first attempt (polled)", b.firstAttempts)
	r.Value = float64(n) / b.firstAttempts.Seconds()
	r.take(b.toll)
	r.RSSMiB, r.CPUMicros = b.wholePeakMiB, micro(b.server, n)
	r.limit(plain)
	r.note("the limit is N1 in the same run; until the last retry: %s mails/s", figure(float64(n)/b.durable().Seconds()))
	r.note("%d answers 4xx, %d answers 5xx; CPU a mail: server %.1f us, sink %.1f us", sum.Rejected4xx, sum.Rejected5xx, micro(b.server, n), micro(b.sink, n))
	w.unless(p.builtin && sum.Rejected5xx == int64(len(failed)), "%d deliveries failed, the sink refused %d for good", len(failed), sum.Rejected5xx)
	w.unless(b.Counts[fanfare.Failed] == int64(len(failed)), "%d failed in the counts, %d in the list", b.Counts[fanfare.Failed], len(failed))
	w.unless(b.Matched == int64(subs) && b.Messages == int64(n), "%d subscriptions matched and %d messages, expected %d and %d", b.Matched, b.Messages, subs, n)
	r.Lost, r.Duplicates, err = account(input, came, failed, n)
	if err != nil {
		return err
	}
	w.unless(r.Lost == 0, "%d people got no mail although they were not refused", r.Lost)
	w.unless(r.Duplicates == 0, "%d mails too many", r.Duplicates)
	return w.err()
}

// plainRate is the rate of N1 in this run.
func (l *lab) plainRate(n int, w *wrong) (float64, error) {
	lines, err := l.notifyPeople(n)
	if err != nil {
		return 0, err
	}
	var aside Record
	b, _, sum, err := l.send(plan{data: "N1", lines: lines, subs: n, retry: "1s"}, &aside, w)
	if err != nil {
		return 0, err
	}
	w.unless(sum.Unique == int64(n) && sum.Duplicates == 0, "N1 beside it: %d of %d people, %d duplicates", sum.Unique, n, sum.Duplicates)
	return float64(n) / b.durable().Seconds(), nil
}

// failures lists the deliveries of an event that failed.
func (s *server) failures(event string) ([]fanfare.Delivery, error) {
	var all []fanfare.Delivery
	q := client.DeliveryQuery{State: fanfare.Failed.String(), Limit: 1000}
	for {
		page, err := s.api.Deliveries(s.lab.ctx, event, q)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Deliveries...)
		if q.Cursor = page.Next; q.Cursor == "" {
			return all, nil
		}
	}
}

// account holds what came to the sink against the input file: each person in it
// has one mail, or else a delivery that failed.
func account(input, came string, failed []fanfare.Delivery, people int) (lost, twice int64, err error) {
	got := make([]uint8, people)
	count := func(address []byte) error {
		p, ok := parsePerson(address)
		if !ok || int(p) >= people {
			return fmt.Errorf("a mail to %q, who is not in the input", address)
		}
		if got[p] < 255 {
			got[p]++
		}
		return nil
	}
	err = eachLine(came, func(line []byte) error {
		fields := bytes.Split(line, []byte{'\t'})
		if len(fields) != 4 {
			return fmt.Errorf("a strange line in the record of the sink: %q", line)
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
	err = eachLine(input, func(line []byte) error {
		_, rest, _ := bytes.Cut(line, []byte(`"to":"`))
		address, _, _ := bytes.Cut(rest, []byte{'"'})
		p, ok := parsePerson(address)
		if !ok {
			return fmt.Errorf("a strange line in the input: %q", line)
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

// parsePerson is the reverse of person.address.
func parsePerson(address []byte) (person, bool) {
	rest, ok := bytes.CutPrefix(address, []byte("person"))
	digits, _, found := bytes.Cut(rest, []byte{'@'})
	n, err := strconv.Atoi(string(digits))
	return person(n), ok && found && err == nil
}

func eachLine(path string, visit func(line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		if err := visit(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}
