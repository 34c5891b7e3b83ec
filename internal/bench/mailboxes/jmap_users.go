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

// RunJMAPUsers is J5.
func RunJMAPUsers(l *harness.Env, r *report.Record) error {
	e := userExperiment{data: "J5", part: "jmap-users", unit: "requests/s", steps: []userStep{{users: 1000, messages: 1000}, {users: 10_000, messages: 100}}, seconds: 240,
		minThink: 20 * time.Second, maxThink: 40 * time.Second, address: func(s *mailServer) string { return s.URL }}
	return e.run(l, r)
}

// jmapMix are the actions of a user.
var jmapMix = []action{{"none", 28}, {"open", 25}, {"changes", 15}, {"flags", 10}, {"select", 8}, {"submit", 5}, {"move", 3}, {"list", 2}, {"text query", 2}, {"keyword query", 2}}

// JMAPUsersPart is the process of the users of J5.
func JMAPUsersPart(ctx context.Context, spec usersSpec, _ io.Reader, out *json.Encoder) error {
	result, err := runUsers(ctx, spec, jmapMix, func(ctx context.Context, u mailUser, random *rand.Rand) (mailProgram, error) {
		c, err := dialJMAP(ctx, spec.Address, u)
		if err != nil {
			return nil, err
		}
		p := &jmapUser{jmapClient: c, random: random}
		return p, errors.Join(p.listMailboxes(ctx), p.selectInbox(ctx))
	})
	if err != nil {
		return err
	}
	return out.Encode(result)
}

// A jmapUser knows the mailboxes and the first page of the inbox.
type jmapUser struct {
	*jmapClient
	random               *rand.Rand
	inbox, drafts, trash string // ids of mailboxes
	identity             string // "": the server sends no mail
	emails               []string
	state                string // of emails
}

func (p *jmapUser) do(ctx context.Context, name string) (waited time.Duration, measured bool, err error) {
	if name == "none" {
		return 0, false, nil
	}
	return 0, true, p.act(ctx, name)
}

func (p *jmapUser) close() error {
	p.http.CloseIdleConnections()
	return nil
}

func (p *jmapUser) act(ctx context.Context, name string) error {
	email := p.emails[p.random.IntN(len(p.emails))]
	switch name {
	case "open":
		_, err := p.call(ctx, fmt.Sprintf(`["Email/get",{"accountId":"ACCOUNT","ids":[%q],"properties":["id","threadId","mailboxIds","keywords","from","to","cc","subject","receivedAt","textBody","htmlBody","attachments","bodyValues"],"fetchTextBodyValues":true,"fetchHTMLBodyValues":true},"0"]`, email))
		return err
	case "changes":
		return p.changes(ctx)
	case "flags":
		return p.set(ctx, email, fmt.Sprintf(`"keywords/$seen":true,"keywords/$flagged":%s`, []string{"true", "null"}[p.random.IntN(2)]))
	case "move":
		return p.set(ctx, email, fmt.Sprintf(`"mailboxIds":{%q:true}`, p.trash))
	case "select":
		return p.selectInbox(ctx)
	case "submit":
		return p.submit(ctx)
	case "list":
		return p.listMailboxes(ctx)
	case "text query":
		return p.query(ctx, fmt.Sprintf(`{"text":"message %d"}`, p.random.IntN(100)))
	case "keyword query":
		return p.query(ctx, `{"hasKeyword":"$flagged"}`)
	}
	return fmt.Errorf("unknown action %q", name)
}

// listMailboxes reads all mailboxes and, if the server sends mail, the identities.
func (p *jmapUser) listMailboxes(ctx context.Context) error {
	calls := `["Mailbox/get",{"accountId":"ACCOUNT","ids":null},"0"]`
	if p.submission {
		calls += `,["Identity/get",{"accountId":"ACCOUNT","ids":null},"1"]`
	}
	answers, err := p.call(ctx, calls)
	if err != nil {
		return err
	}
	for i, a := range answers {
		var got struct {
			List []struct{ ID, Role string }
		}
		if err := json.Unmarshal(a.arguments, &got); err != nil {
			return err
		}
		for _, m := range got.List {
			switch {
			case i > 0:
				p.identity = m.ID
			case m.Role == "inbox":
				p.inbox = m.ID
			case m.Role == "drafts":
				p.drafts = m.ID
			case m.Role == "trash":
				p.trash = m.ID
			}
		}
	}
	if p.inbox == "" || p.drafts == "" || p.trash == "" {
		return fmt.Errorf("the account has not the mailboxes inbox, drafts and trash: %.300s", answers[0].arguments)
	}
	return nil
}

// selectInbox reads the newest messages of the inbox as a list shows them.
func (p *jmapUser) selectInbox(ctx context.Context) error {
	answers, err := p.call(ctx, fmt.Sprintf(`["Email/query",{"accountId":"ACCOUNT","filter":{"inMailbox":%q},"sort":[{"property":"receivedAt","isAscending":false}],"limit":20},"0"],`+
		`["Email/get",{"accountId":"ACCOUNT","#ids":{"resultOf":"0","name":"Email/query","path":"/ids"},"properties":["id","threadId","mailboxIds","keywords","from","subject","receivedAt","size","preview","hasAttachment"]},"1"]`, p.inbox))
	if err != nil {
		return err
	}
	var page struct {
		State string
		List  []struct{ ID string }
	}
	if err := json.Unmarshal(answers[1].arguments, &page); err != nil {
		return err
	}
	p.emails, p.state = p.emails[:0], page.State
	for _, m := range page.List {
		p.emails = append(p.emails, m.ID)
	}
	if len(p.emails) == 0 {
		return errors.New("the inbox is empty")
	}
	return nil
}

// changes asks for what is new since the last request.
func (p *jmapUser) changes(ctx context.Context) error {
	answers, err := p.call(ctx, fmt.Sprintf(`["Email/changes",{"accountId":"ACCOUNT","sinceState":%q,"maxChanges":500},"0"],`+
		`["Email/get",{"accountId":"ACCOUNT","#ids":{"resultOf":"0","name":"Email/changes","path":"/created"},"properties":["id","from","subject","receivedAt","preview"]},"1"],`+
		`["Email/get",{"accountId":"ACCOUNT","#ids":{"resultOf":"0","name":"Email/changes","path":"/updated"},"properties":["id","mailboxIds","keywords"]},"2"]`, p.state))
	if err != nil {
		return err
	}
	var got struct{ NewState string }
	err = json.Unmarshal(answers[0].arguments, &got)
	p.state = got.NewState
	return err
}

// set changes properties of a message.
func (p *jmapUser) set(ctx context.Context, email, patch string) error {
	answers, err := p.call(ctx, fmt.Sprintf(`["Email/set",{"accountId":"ACCOUNT","update":{%q:{%s}}},"0"]`, email, patch))
	if err != nil {
		return err
	}
	var got struct{ NotUpdated map[string]json.RawMessage }
	if err := json.Unmarshal(answers[0].arguments, &got); err != nil || len(got.NotUpdated) > 0 {
		return errors.Join(err, fmt.Errorf("the message was not updated: %.300s", answers[0].arguments))
	}
	return nil
}

// query searches all mailboxes.
func (p *jmapUser) query(ctx context.Context, filter string) error {
	_, err := p.call(ctx, fmt.Sprintf(`["Email/query",{"accountId":"ACCOUNT","filter":%s,"sort":[{"property":"receivedAt","isAscending":false}],"limit":20},"0"]`, filter))
	return err
}

// submit writes a draft, and sends it to its writer if the server sends mail.
func (p *jmapUser) submit(ctx context.Context) error {
	text, _ := json.Marshal(strings.Repeat("A line of a mail that its writer sends. ", 50))
	calls := fmt.Sprintf(`["Email/set",{"accountId":"ACCOUNT","create":{"m":{"mailboxIds":{%q:true},"keywords":{"$draft":true},"from":[{"email":%q}],"to":[{"email":%q}],"subject":"a mail","bodyValues":{"t":{"value":%s}},"textBody":[{"partId":"t","type":"text/plain"}]}}},"0"]`,
		p.drafts, p.user.User, p.user.User, text)
	if p.identity != "" {
		calls += fmt.Sprintf(`,["EmailSubmission/set",{"accountId":"ACCOUNT","create":{"s":{"emailId":"#m","identityId":%q}}},"1"]`, p.identity)
	}
	answers, err := p.call(ctx, calls)
	if err != nil {
		return err
	}
	for _, a := range answers {
		var got struct{ NotCreated map[string]json.RawMessage }
		if err := json.Unmarshal(a.arguments, &got); err != nil || len(got.NotCreated) > 0 {
			return errors.Join(err, fmt.Errorf("%s created nothing: %.300s", a.name, a.arguments))
		}
	}
	return nil
}
