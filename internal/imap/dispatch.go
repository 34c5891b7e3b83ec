package imap

import (
	"context"
	"errors"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/imap/syntax"
	"fanfare.dev/fanfare/internal/mailbox"
)

// dispatch executes a command. A result without a kind means that the command has answered.
func (s *session) dispatch(c *syntax.Command) status {
	switch c.Name {
	case "CAPABILITY":
		s.untagged("CAPABILITY %s", s.capabilities())
		return ok("CAPABILITY completed")
	case "NOOP":
		return ok("NOOP completed")
	case "LOGOUT":
		return s.logOut()
	case "ID":
		s.out = append(s.out, "* ID (\"name\" \"Fanfare\" \"vendor\" \"Fanfare\")\r\n"...)
		return ok("ID completed")
	case "STARTTLS":
		answer := s.startTLS()
		if answer.kind != "OK" {
			return answer
		}
		s.tagged(c.Tag, answer)
		s.server.metrics.command("STARTTLS", "OK", 0)
		if s.flush() == nil {
			s.handshake()
		}
		return status{}
	case "LOGIN", "AUTHENTICATE":
		if s.loggedIn {
			return bad("you are already logged in")
		}
		if c.Name == "LOGIN" {
			return s.login(c.Args.(*syntax.Login))
		}
		return s.authenticate(c.Args.(*syntax.Authenticate))
	}
	if !s.loggedIn {
		return bad("log in first")
	}
	if answer, done := s.dispatchAuthenticated(c); done {
		return answer
	}
	if s.selected == nil {
		return bad("select a mailbox first")
	}
	return s.dispatchSelected(c)
}

// dispatchAuthenticated executes the commands that need no selected mailbox.
func (s *session) dispatchAuthenticated(c *syntax.Command) (answer status, done bool) {
	switch c.Name {
	case "ENABLE":
		return s.enable(c.Args.(*syntax.Enable)), true
	case "SELECT", "EXAMINE":
		return s.selectMailbox(c.Args.(*syntax.Select), c.Name == "EXAMINE"), true
	case "CREATE":
		return s.create(c.Args.(*syntax.Create)), true
	case "DELETE":
		return s.remove(c.Args.(*syntax.Mailbox)), true
	case "RENAME":
		return s.rename(c.Args.(*syntax.Rename)), true
	case "SUBSCRIBE":
		return s.subscribe(c.Args.(*syntax.Mailbox), true), true
	case "UNSUBSCRIBE":
		return s.subscribe(c.Args.(*syntax.Mailbox), false), true
	case "LIST":
		return s.list(c.Args.(*syntax.List)), true
	case "LSUB":
		return s.lsub(c.Args.(*syntax.List)), true
	case "NAMESPACE":
		s.out = append(s.out, "* NAMESPACE ((\"\" \"/\")) NIL NIL\r\n"...)
		return ok("NAMESPACE completed"), true
	case "STATUS":
		return s.statusCommand(c.Args.(*syntax.Status)), true
	case "APPEND":
		return s.appendMessages(c.Args.(*syntax.Append)), true
	case "IDLE":
		return s.idle(), true
	case "GETQUOTA":
		return s.getQuota(c.Args.(*syntax.QuotaRoot)), true
	case "GETQUOTAROOT":
		return s.getQuotaRoot(c.Args.(*syntax.Mailbox)), true
	case "SETQUOTA":
		return no("NOPERM", "only the operator can change a quota"), true
	case "COMPRESS":
		return s.compress(c), true
	}
	return status{}, false
}

func (s *session) dispatchSelected(c *syntax.Command) status {
	switch c.Name {
	case "CHECK":
		return ok("CHECK completed")
	case "CLOSE":
		return s.closeMailbox()
	case "UNSELECT":
		s.unselect()
		return ok("UNSELECT completed")
	case "EXPUNGE":
		set, _ := c.Args.(*syntax.Set)
		return s.expunge(set)
	case "SEARCH":
		return s.search(c)
	case "FETCH":
		return s.fetch(c)
	case "STORE":
		return s.store(c)
	case "COPY", "MOVE":
		return s.copy(c)
	}
	return bad("the command %s is not known", c.FullName())
}

// failure returns the response to an error of the store.
func (s *session) failure(err error) status {
	code := "SERVERBUG"
	for _, of := range []struct {
		err  error
		code string
	}{
		{mailbox.ErrNoMailbox, "NONEXISTENT"}, {mailbox.ErrExists, "ALREADYEXISTS"}, {mailbox.ErrOverQuota, "OVERQUOTA"}, {mailbox.ErrTooLarge, "TOOBIG"}, {mailbox.ErrTooMany, "LIMIT"},
		{mailbox.ErrBadName, "CANNOT"}, {mailbox.ErrBadKeyword, "CANNOT"}, {mailbox.ErrFixed, "CANNOT"}, {mailbox.ErrHasChild, "HASCHILDREN"}, {mailbox.ErrNoMessage, "EXPUNGEISSUED"},
		{mailbox.ErrNotEmpty, "CANNOT"},
	} {
		if errors.Is(err, of.err) {
			code = of.code
		}
	}
	problem, is := errors.AsType[*fanfare.Error](err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return no("UNAVAILABLE", "the server is shutting down: connect again")
	case errors.Is(err, mailbox.ErrNoAccount):
		s.over = true
		s.untagged("BYE the account was removed")
		return no("NOPERM", "the account does not exist any more")
	case is && (problem.Code == fanfare.Unavailable || problem.Code == fanfare.DiskFull):
		s.server.o.Logger.Warn("an IMAP command failed", "account", s.account.ID, "error", err)
		return no("UNAVAILABLE", "%s", userText(problem))
	case is && code == "SERVERBUG" && problem.Code != fanfare.Internal:
		return no("CANNOT", "%s", userText(problem))
	case is && code != "SERVERBUG":
		return no(code, "%s", userText(problem))
	}
	s.server.o.Logger.Error("an IMAP command failed", "account", s.account.ID, "error", err)
	return no(code, "an internal error occurred: try again, and tell the operator")
}

func decimal[T ~int | ~int64 | ~uint32](n T) string { return strconv.FormatInt(int64(n), 10) }
