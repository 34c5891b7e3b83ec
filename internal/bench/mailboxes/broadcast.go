package mailboxes

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

// readers is the number of random people who read their message after the broadcast.
const readers = 1000

// RunBroadcast is J6.
func RunBroadcast(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 2000)
	r.Unit = "messages/s"
	r.Params["inboxes"] = n
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var took []float64
	b, _, _, err := l.SendBroadcast(harness.BroadcastPlan{Data: "J6", Lines: lines, Subscriptions: n, Args: mailArgs,
		Config: func(string) []byte {
			return loadgen.Channel{Driver: "driver: inbox, " + loadgen.SenderField, Retry: "1s"}.Configuration(loadgen.Service)
		},
		Inspect: func(s *harness.Server, _ *harness.SentBroadcast) (err error) {
			took, err = readInboxes(s, n, &w)
			return err
		},
	}, r, &w)
	if err != nil {
		return err
	}
	w.Require(b.Messages == int64(n), "%d messages, expected %d", b.Messages, n)
	r.Value = float64(n) / b.Durable().Seconds()
	b.AddStagesTo(r)
	harness.RecordUsage(r, b.WindowUsage)
	r.P50Millis, r.P99Millis = report.Percentile(took, 50), report.Percentile(took, 99)
	size, err := stored(l.File("J6"))
	if err != nil {
		return err
	}
	r.Note("p50 and p99: SELECT and FETCH of the message over IMAP by %d random people, each for the first time; %.0f bytes per message on disk, with outcomes (goal: 300)", len(took), float64(size)/float64(n))
	raw, err := insertRaw(l, l.File("J6"), n)
	if err != nil {
		return err
	}
	r.SetLimit(raw)
	r.Note("limit: one connection of SQLite inserts the same rows in transactions of %d messages", batchSize)
	return report.FirstError(nil, w)
}

// stored returns the size of the files that a broadcast writes: mailboxes and outcomes, after the server has stopped.
func stored(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if name := entry.Name(); strings.HasPrefix(name, "mailboxes.db") || strings.HasPrefix(name, "deliveries-") {
			info, err := entry.Info()
			if err != nil {
				return err
			}
			size += info.Size()
		}
		return nil
	})
	return size, err
}

// readInboxes lets random people read their message over IMAP, and returns the durations in milliseconds, sorted.
func readInboxes(s *harness.Server, people int, w *report.Checks) (took []float64, err error) {
	mail, err := mailServerOf(s)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(s.Env.Seed, 6))
	bar := s.Env.Progress("people read their message", int64(min(readers, people)))
	defer bar.End()
	for i := range min(readers, people) {
		person := loadgen.Person(random.IntN(people))
		password, err := s.API.CreateAppPassword(s.Env.Ctx, person.Address(), "bench")
		if err != nil {
			return nil, err
		}
		c, err := dialIMAP(s.Env.Ctx, mail.imap, mailUser{password.User, password.Password})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", person.Address(), err)
		}
		started := time.Now()
		if _, err := c.command("SELECT INBOX"); err != nil {
			return nil, err
		}
		answer, err := c.command("UID FETCH 1:* BODY.PEEK[]")
		if err != nil {
			return nil, err
		}
		took = append(took, report.Millis(time.Since(started)))
		w.Require(strings.Count(answer, "BODY[] {") == 1 && strings.Contains(answer, person.Address()), "%s reads %q", person.Address(), answer)
		if err := c.close(); err != nil {
			return nil, err
		}
		bar.Set(int64(i + 1))
	}
	slices.Sort(took)
	return took, nil
}
