package mailboxes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// idleFor is for how long a user waits for changes.
const idleFor = 2 * time.Second

// RunUsers is J4.
func RunUsers(l *harness.Env, r *report.Record) error {
	e := userExperiment{data: "J4", part: "users", unit: "commands/s", steps: []userStep{{users: 1000, messages: 1000}, {users: 3000, messages: 300, dovecot: true}, {users: 10_000, messages: 100}}, seconds: 120,
		minThink: 2 * time.Second, maxThink: 18 * time.Second, address: func(s *mailServer) string { return s.imap }}
	return e.run(l, r)
}

// imapMix are the commands of a user.
var imapMix = []action{{"STATUS", 30}, {"IDLE", 15}, {"QUOTA", 9}, {"HEADER", 9}, {"BODY", 9}, {"APPEND", 8}, {"NOOP", 8}, {"SEARCH SEEN", 2}, {"SEARCH TEXT", 2}, {"SELECT", 2}, {"STORE", 2}, {"LIST", 1}, {"RESELECT", 1}, {"CHECK", 1}, {"EXPUNGE", 1}}

// UsersPart is the process of the users of J4.
func UsersPart(ctx context.Context, spec usersSpec, _ io.Reader, out *json.Encoder) error {
	idle := min(idleFor, spec.MinThink)
	result, err := runUsers(ctx, spec, imapMix, func(ctx context.Context, u mailUser, random *rand.Rand) (mailProgram, error) {
		c, err := dialIMAP(ctx, spec.Address, u)
		if err != nil {
			return nil, err
		}
		_, err = c.command("SELECT INBOX")
		return &imapUser{imapClient: c, random: random, idleFor: idle}, err
	})
	if err != nil {
		return err
	}
	return out.Encode(result)
}

// An imapUser has a connection with the inbox selected.
type imapUser struct {
	*imapClient
	random  *rand.Rand
	idleFor time.Duration
	draft   string
}

func (p *imapUser) do(ctx context.Context, name string) (waited time.Duration, measured bool, err error) {
	if name == "IDLE" {
		waited, err = p.idle(ctx)
		return waited, true, err
	}
	_, err = p.command(p.text(name))
	if err == nil && name == "SELECT" {
		_, err = p.command("SELECT INBOX")
	}
	return 0, true, err
}

// text returns the command with a name.
func (p *imapUser) text(name string) (text string) {
	switch name {
	case "STATUS":
		text = "STATUS INBOX (MESSAGES UNSEEN UIDNEXT)"
	case "QUOTA":
		text = "GETQUOTAROOT INBOX"
	case "HEADER":
		text = "FETCH * (UID FLAGS BODY.PEEK[HEADER])"
	case "BODY":
		text = "FETCH * (UID BODY.PEEK[])"
	case "APPEND":
		if p.draft == "" {
			p.draft = "From: me@example.org\r\nSubject: draft\r\n\r\n" + strings.Repeat("A line of a draft that its writer keeps for later.\r\n", 440)
		}
		text = fmt.Sprintf("APPEND Drafts (\\Draft) {%d+}\r\n%s", len(p.draft), p.draft)
	case "NOOP", "CHECK", "EXPUNGE":
		text = name
	case "SEARCH SEEN":
		text = "UID SEARCH UNSEEN"
	case "SEARCH TEXT":
		text = fmt.Sprintf(`UID SEARCH SUBJECT "number %d"`, p.random.IntN(100))
	case "SELECT":
		text = "SELECT Drafts"
	case "STORE":
		text = `STORE * +FLAGS (\Flagged)`
	case "LIST":
		text = `LIST "" "*"`
	case "RESELECT":
		text = "SELECT INBOX"
	}
	return text
}

// idle waits a while for changes.
func (p *imapUser) idle(ctx context.Context) (waited time.Duration, err error) {
	if err := p.start("IDLE"); err != nil {
		return 0, err
	}
	line, err := p.line()
	for err == nil && strings.HasPrefix(line, "* ") {
		line, err = p.line()
	}
	if err != nil {
		return 0, err
	}
	if !strings.HasPrefix(line, "+") {
		return 0, errors.New("IDLE: " + line)
	}
	if err := harness.Pause(ctx, p.idleFor); err != nil {
		return 0, err
	}
	_, err = p.finish("DONE\r\n")
	return p.idleFor, err
}
