package mailboxes

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// RunDelivery is J3.
func RunDelivery(l *harness.Env, r *report.Record) error {
	const accounts = 100
	n := l.Size(300_000, 2000)
	r.Unit = "mails/s"
	s, users, err := startMailServer(l, "J3", accounts)
	if err != nil {
		return err
	}
	const senders, sessions = 10, 10
	r.Params["mails"], r.Params["accounts"], r.Params["sessions"] = n, accounts, senders*sessions
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	window := s.OpenWindow(nil)
	started := time.Now()
	recipients := make([]mailUser, senders)
	for i := range recipients {
		recipients[i] = users[i*accounts/senders]
	}
	clients, err := deliverMails(l, r, s.lmtp, recipients, sessions, n/senders)
	if err != nil {
		return err
	}
	took := time.Since(started)
	harness.RecordUsage(r, window.Close())
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	var w report.Checks
	var found int64
	for _, u := range recipients {
		stored, err := messagesOf(l.Ctx, s.imap, u)
		if err != nil {
			return err
		}
		found += stored
	}
	sent := n / senders * senders
	w.Require(found == int64(sent), "%d of %d mails are in the mailboxes", found, sent)
	r.Value = float64(sent) / took.Seconds()
	r.Note("%d senders with %d sessions each, mails of 1 KB to %d accounts, each durable before its 250; CPU per mail: clients %.0f us", senders, sessions, senders, float64(clients.Microseconds())/float64(sent))
	if err := s.Stop(); err != nil {
		return err
	}
	if missing := lookDovecot(); missing != nil {
		r.Note("%v", missing)
	} else if err := deliverToDovecot(l, r, senders, sessions, &w); err != nil {
		return fmt.Errorf("deliveries to Dovecot: %w", err)
	}
	return report.FirstError(nil, w)
}

// deliverToDovecot delivers mails to Dovecot in the same way, but fewer.
func deliverToDovecot(l *harness.Env, r *report.Record, senders, sessions int, w *report.Checks) error {
	d, err := startDovecot(l, senders)
	if err != nil {
		return err
	}
	// The first message of a mailbox creates it, and Dovecot refuses another one meanwhile.
	if err := seedMailboxes(l, d.lmtp, d.users, 1); err != nil {
		return d.WithLog(err)
	}
	count, end, err := d.counter(l.Ctx)
	defer end()
	if err != nil {
		return d.WithLog(err)
	}
	each := l.Size(30_000, 100) / senders
	used := d.used()
	started := time.Now()
	if _, err := deliverMails(l, r, d.lmtp, d.users, sessions, each); err != nil {
		return d.WithLog(err)
	}
	took := time.Since(started)
	cpu := used().cpu
	found, err := count()
	if err != nil {
		return d.WithLog(err)
	}
	sent := each * senders
	found -= int64(senders)
	w.Require(found == int64(sent), "%d of %d mails are in the mailboxes of Dovecot", found, sent)
	rate := float64(sent) / took.Seconds()
	r.AddPoint(report.Point{At: "Dovecot", Value: rate})
	r.Note("Dovecot over LMTP in the same run, with the same senders and sessions and %d mails (sdbox, fsync): %.0f mails/s, %.0f us of CPU per mail", sent, rate, float64(cpu.Microseconds())/float64(sent))
	if _, missing := harness.LookPostfix("postfix"); missing != nil {
		r.Note("%v: no comparison with Postfix before Dovecot", missing)
	} else if err := deliverThroughPostfix(l, r, d, count, sessions, max(each/10, 3), w); err != nil {
		return fmt.Errorf("postfix before it: %w", err)
	}
	return d.Stop()
}

// deliverMails sends a number of mails to each recipient with smtp-source, or without Postfix with the sender of this program. It returns the
// CPU time of the clients.
func deliverMails(l *harness.Env, r *report.Record, lmtp string, recipients []mailUser, sessions, each int) (clients time.Duration, err error) {
	if _, missing := harness.LookPostfix("smtp-source"); missing != nil {
		r.Note("%v: the program itself sends", missing)
		own := harness.OwnCPU()
		err := sendMails(l.Ctx, lmtp, recipients, sessions, each)
		return harness.OwnCPU() - own, err
	}
	return smtpSource(l, lmtp, recipients, sessions, each, "-L")
}

// smtpSource sends a number of mails of 1 KB to each recipient with a process of smtp-source for each.
func smtpSource(l *harness.Env, address string, recipients []mailUser, sessions, each int, flags ...string) (clients time.Duration, err error) {
	program, err := harness.LookPostfix("smtp-source")
	if err != nil {
		return 0, err
	}
	processes := make([]*harness.Process, len(recipients))
	for i, u := range recipients {
		processes[i], err = l.Spawn("smtp-source", nil, program, append(flags, "-d", "-s", fmt.Sprint(sessions), "-l", "1024", "-m", fmt.Sprint(each),
			"-f", "sender@example.net", "-t", u.User, address)...)
		if err != nil {
			return 0, err
		}
	}
	for _, p := range processes {
		if err := p.Wait(); err != nil {
			return 0, err
		}
		clients += p.Final.CPU
	}
	return clients, nil
}

// sendMails sends mails of 1 KB over connections of its own.
func sendMails(ctx context.Context, lmtp string, recipients []mailUser, sessions, each int) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, u := range recipients {
		left := make(chan struct{}, each)
		for range each {
			left <- struct{}{}
		}
		close(left)
		for range sessions {
			g.Go(func() error {
				s, err := dialLMTP(ctx, lmtp)
				if err != nil {
					return err
				}
				defer s.conn.Close()
				message := []byte("From: sender@example.net\r\nSubject: bench\r\n\r\n" + strings.Repeat("A line of a mail.\r\n", 50))
				for range left {
					if err := s.deliver([]mailUser{u}, message); err != nil {
						return err
					}
				}
				return s.send(1, "QUIT\r\n")
			})
		}
	}
	return g.Wait()
}

// A lmtpClient delivers messages one after the other.
type lmtpClient struct {
	conn net.Conn
	in   *bufio.Reader
}

func dialLMTP(ctx context.Context, address string) (*lmtpClient, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	s := &lmtpClient{conn, bufio.NewReader(conn)}
	if err := s.replies(1); err != nil {
		return nil, err
	}
	return s, s.send(1, "LHLO bench\r\n")
}

// seedPatience is how long the delivery of one message to all accounts may take.
const seedPatience = 5 * time.Minute

// seedMailboxes delivers the same messages of 2 to 200 KB to all users over LMTP. The sizes are spread evenly over their logarithm.
func seedMailboxes(l *harness.Env, lmtp string, users []mailUser, messages int) error {
	s, err := dialLMTP(l.Ctx, lmtp)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	bar := l.Progress("messages in each mailbox", int64(messages))
	defer bar.End()
	random := rand.New(rand.NewPCG(l.Seed, 4))
	const atOnce = 500 // recipients of a transaction
	for i := range messages {
		message := seedMessage(random, i)
		for from := 0; from < len(users); from += atOnce {
			if err := s.deliver(users[from:min(from+atOnce, len(users))], message); err != nil {
				return err
			}
		}
		bar.Set(int64(i + 1))
	}
	return s.send(1, "QUIT\r\n")
}

func (s *lmtpClient) deliver(users []mailUser, message []byte) error {
	var b bytes.Buffer
	b.WriteString("MAIL FROM:<sender@example.net>\r\n")
	for _, u := range users {
		fmt.Fprintf(&b, "RCPT TO:<%s>\r\n", u.User)
	}
	b.WriteString("DATA\r\n")
	if err := s.send(len(users)+2, b.String()); err != nil {
		return err
	}
	if err := s.send(len(users), string(message)+".\r\n"); err != nil {
		return err
	}
	return nil
}

// send writes commands and reads a number of replies.
func (s *lmtpClient) send(replies int, text string) error {
	if err := s.conn.SetDeadline(time.Now().Add(seedPatience)); err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { _, err := s.conn.Write([]byte(text)); written <- err }() // the server answers while it reads
	return errors.Join(s.replies(replies), <-written)
}

func (s *lmtpClient) replies(n int) error {
	for n > 0 {
		line, err := s.in.ReadString('\n')
		if err != nil {
			return err
		}
		if line[0] > '3' {
			return fmt.Errorf("the server replied %q", strings.TrimSpace(line))
		}
		if len(line) > 3 && line[3] == ' ' {
			n--
		}
	}
	return nil
}

// seedMessage returns the ith message: text, with an attachment that makes up most of its size.
func seedMessage(random *rand.Rand, i int) []byte {
	want := int(2048 * math.Pow(100, random.Float64()))
	var b bytes.Buffer
	fmt.Fprintf(&b, "From: Sender %d <sender%d@example.net>\r\nTo: you@example.org\r\nSubject: Message number %d\r\nMessage-ID: <%d@bench.example.net>\r\nDate: Fri, 27 Nov 2026 12:00:00 +0000\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nHello, this is the text of message %d.\r\n--b\r\nContent-Type: application/octet-stream; name=data.bin\r\nContent-Disposition: attachment; filename=data.bin\r\nContent-Transfer-Encoding: base64\r\n\r\n", i%50, i%50, i, i, i)
	for b.Len() < want {
		for range 19 {
			fmt.Fprintf(&b, "%c%c%c%c", 'A'+random.IntN(26), 'A'+random.IntN(26), 'a'+random.IntN(26), 'a'+random.IntN(26))
		}
		b.WriteString("\r\n")
	}
	b.WriteString("--b--\r\n")
	return b.Bytes()
}
