package mailboxes

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
)

// A mailUser is a person with a mailbox.
type mailUser struct{ User, Password string }

// A mailServer is a server with the addresses at which it serves mailboxes.
type mailServer struct {
	*harness.Server
	imap, lmtp string
}

// mailArgs let a server choose its ports for mailboxes itself: another process could take a port that is chosen before.
var mailArgs = []string{"--imap-listen", "127.0.0.1:0", "--lmtp-listen", "127.0.0.1:0"}

// listenPatience is how long a server may take from the start of its API until it serves mailboxes.
const listenPatience = time.Minute

// mailServerOf reads the addresses of a server that was started with mailArgs from its log.
func mailServerOf(s *harness.Server) (*mailServer, error) {
	m := &mailServer{Server: s}
	ctx, cancel := context.WithTimeout(s.Env.Ctx, listenPatience)
	defer cancel()
	return m, s.WaitForLog(ctx, func(line string) bool {
		_, rest, _ := strings.Cut(line, " listen=")
		address, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		switch {
		case strings.Contains(line, "listener=lmtp"):
			m.lmtp = address
		case strings.Contains(line, "serving mailboxes over IMAP"):
			m.imap = address
		}
		return m.lmtp != "" && m.imap != ""
	})
}

// startMailServer starts a server whose channel stores messages in mailboxes, with n people who each have an app password.
func startMailServer(l *harness.Env, data string, n int) (*mailServer, []mailUser, error) {
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return nil, nil, err
	}
	started, err := l.StartServer(data, mailArgs...)
	if err != nil {
		return nil, nil, err
	}
	s, err := mailServerOf(started)
	if err != nil {
		return nil, nil, err
	}
	document := loadgen.Channel{Driver: "driver: inbox, " + loadgen.SenderField, Retry: "1s"}.Configuration(loadgen.Service)
	if err := s.FillCompletely(document, lines); err != nil {
		return nil, nil, err
	}
	bar := l.Progress("app passwords", int64(n))
	defer bar.End()
	users := make([]mailUser, n)
	var done atomic.Int64
	g, ctx := errgroup.WithContext(l.Ctx)
	g.SetLimit(20)
	for i := range n {
		g.Go(func() error {
			made, err := s.API.CreateAppPassword(ctx, loadgen.Person(i).Address(), "bench")
			users[i] = mailUser{made.User, made.Password}
			bar.Set(done.Add(1))
			return err
		})
	}
	return s, users, g.Wait()
}

// messagesOf returns the number of messages in the inbox of a person.
func messagesOf(ctx context.Context, imap string, u mailUser) (n int64, err error) {
	c, err := dialIMAP(ctx, imap, u)
	if err != nil {
		return 0, err
	}
	if n, err = c.messages(); err != nil {
		return 0, err
	}
	return n, c.close()
}

// messages returns the number of messages in the inbox.
func (c *imapClient) messages() (int64, error) {
	answer, err := c.command("STATUS INBOX (MESSAGES)")
	if err != nil {
		return 0, err
	}
	return numberAfter(answer, "MESSAGES ")
}
