package mailboxes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// The workload of J1 and J2: each sender opens a connection for each mail.
const (
	mailSenders = 100
	mailPause   = time.Second // of J1, after each mail
	mailMinutes = 5           // of J1
	mailsOfJ1   = 29_924      // that the other system accepted in this time; J2 delivers as many
)

// RunAccepting is J1.
func RunAccepting(l *harness.Env, r *report.Record) error {
	duration := max(3*time.Second, time.Duration(l.Scale*mailMinutes*float64(time.Minute)))
	r.Unit = "mails"
	return runMailByMail(l, r, "J1", func(ctx context.Context, sender int, send func() error) error {
		end := time.Now().Add(duration)
		// The senders begin one after the other, as people do.
		for pause := mailPause * time.Duration(sender) / mailSenders; time.Now().Add(pause).Before(end); pause = mailPause {
			if err := harness.Pause(ctx, pause); err != nil {
				return err
			}
			if err := send(); err != nil {
				return err
			}
		}
		return nil
	}, func(accepted int64, took time.Duration) float64 {
		r.Note("%d mails accepted in %.1f s, with a pause of %v after each", accepted, took.Seconds(), mailPause)
		return float64(accepted)
	})
}

// RunDraining is J2.
func RunDraining(l *harness.Env, r *report.Record) error {
	var left atomic.Int64
	left.Store(int64(l.Size(mailsOfJ1, 500)))
	r.Unit = "mails/s"
	return runMailByMail(l, r, "J2", func(_ context.Context, _ int, send func() error) error {
		for left.Add(-1) >= 0 {
			if err := send(); err != nil {
				return err
			}
		}
		return nil
	}, func(accepted int64, took time.Duration) float64 { return float64(accepted) / took.Seconds() })
}

// runMailByMail lets senders deliver mails to each other, and counts the mails in the mailboxes. value returns the result.
func runMailByMail(l *harness.Env, r *report.Record, data string, sender func(ctx context.Context, sender int, send func() error) error, value func(accepted int64, took time.Duration) float64) error {
	n := l.Size(mailSenders, 10)
	s, users, err := startMailServer(l, data, n)
	if err != nil {
		return err
	}
	r.Params["senders"] = n
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	window := s.OpenWindow(nil)
	own := harness.OwnCPU()
	var accepted atomic.Int64
	sent := make([]int64, n)
	started := time.Now()
	g, ctx := errgroup.WithContext(l.Ctx)
	for i := range n {
		random := rand.New(rand.NewPCG(l.Seed, uint64(i)))
		g.Go(func() error {
			return sender(ctx, i*mailSenders/n, func() error {
				sent[i]++
				accepted.Add(1)
				return deliverOne(ctx, s.lmtp, users[i], users[(i+1)%n], sent[i], random)
			})
		})
	}
	if err := g.Wait(); err != nil {
		return s.WithLog(err)
	}
	took := time.Since(started)
	own = harness.OwnCPU() - own
	harness.RecordUsage(r, window.Close())
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	var w report.Checks
	for i := range n {
		found, err := messagesOf(l.Ctx, s.imap, users[(i+1)%n])
		if err != nil {
			return err
		}
		w.Require(found == sent[i], "%d of %d mails are in the mailbox of %s", found, sent[i], users[(i+1)%n].User)
	}
	total := accepted.Load()
	r.Value = value(total, took)
	r.Note("text mails of 1 to 8 KB over LMTP, each over a connection of its own, each durable in its mailbox before its 250, so that no queue exists; CPU for each mail: server %.0f us, clients %.0f us",
		r.CPUSeconds*1e6/float64(total), float64(own.Microseconds())/float64(total))
	return report.FirstError(s.Stop(), w)
}

// deliverOne delivers a text mail over a connection of its own.
func deliverOne(ctx context.Context, lmtp string, from, to mailUser, number int64, random *rand.Rand) error {
	c, err := dialLMTP(ctx, lmtp)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	text := fmt.Sprintf("From: %s\r\nTo: %s\r\nSubject: mail %d\r\nMessage-ID: <%d.%s>\r\nDate: Fri, 27 Nov 2026 12:00:00 +0000\r\n\r\n%s", from.User, to.User, number, number, from.User,
		strings.Repeat("A line of the text of a mail that one person writes to another.\r\n", 16+random.IntN(112)))
	if err := c.deliver([]mailUser{to}, []byte(text)); err != nil {
		return err
	}
	return c.send(1, "QUIT\r\n")
}
