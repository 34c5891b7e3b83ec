//go:build crashsteps

package crash

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// A jmapEmail is a message of JMAP: its text, its keywords in order, and its mailbox.
type jmapEmail struct {
	text, keywords, mailbox string
	blob                    string // its blobId, "" before it was seen
}

// A jmapUser changes bob's mailboxes Work and Done, which nobody else does, and knows what they must hold.
type jmapUser struct {
	m         *mailWorld
	random    *rand.Rand
	account   string
	http      *http.Client
	mailboxes map[string]string // ids by name
	emails    map[string]jmapEmail
	removed   map[string]bool // ids of messages that were destroyed

	pending *jmapChange // whose answer was not read
	state   string      // that the last answer told
	sent    int
}

// A jmapChange is a request that may or may not have been carried out.
type jmapChange struct {
	id    string     // that it changes or destroys
	to    *jmapEmail // nil: it is destroyed
	added *jmapEmail
}

func newJMAPUser(m *mailWorld) *jmapUser {
	return &jmapUser{m: m, random: m.random(30), http: &http.Client{Timeout: patience}, mailboxes: map[string]string{}, emails: map[string]jmapEmail{}, removed: map[string]bool{}}
}

func (u *jmapUser) broken(format string, args ...any) { u.m.broken("bob: "+format, args...) }

// send sends a request and returns the body of a response with success.
func (u *jmapUser) send(ctx context.Context, l *life, method, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, l.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.SetBasicAuth("bob@example.org", u.m.passwords["bob"])
	r.Header.Set("Content-Type", "application/json")
	response, err := u.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode/100 != 2 {
		return nil, refusal(fmt.Sprintf("%s %s is answered with %s: %.300s", method, path, response.Status, answer), response.StatusCode == http.StatusServiceUnavailable)
	}
	return answer, nil
}

// call calls one method and reads its response.
func (u *jmapUser) call(ctx context.Context, l *life, name string, args map[string]any, into any) error {
	if args == nil {
		args = map[string]any{}
	}
	args["accountId"] = u.account
	body, err := json.Marshal(map[string]any{"using": []string{"urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"}, "methodCalls": []any{[]any{name, args, "c"}}})
	if err != nil {
		return err
	}
	answer, err := u.send(ctx, l, http.MethodPost, "/jmap/api", string(body))
	if err != nil {
		return err
	}
	var response struct{ MethodResponses [][]json.RawMessage }
	if err := json.Unmarshal(answer, &response); err != nil {
		return err
	}
	if len(response.MethodResponses) != 1 || !bytes.Equal(response.MethodResponses[0][0], []byte(`"`+name+`"`)) {
		return refusal(fmt.Sprintf("%s is answered with %s", name, answer), bytes.Contains(answer, []byte("serverUnavailable")))
	}
	return json.Unmarshal(response.MethodResponses[0][1], into)
}

func (u *jmapUser) session(ctx context.Context, l *life) error {
	if u.account == "" {
		answer, err := u.send(ctx, l, http.MethodGet, "/jmap/session", "")
		if err != nil {
			return err
		}
		var session struct{ PrimaryAccounts map[string]string }
		if err := json.Unmarshal(answer, &session); err != nil {
			return err
		}
		u.account = session.PrimaryAccounts["urn:ietf:params:jmap:mail"]
	}
	var list struct{ List []struct{ ID, Name string } }
	if err := u.call(ctx, l, "Mailbox/get", nil, &list); err != nil {
		return err
	}
	for _, mailbox := range list.List {
		u.mailboxes[mailbox.Name] = mailbox.ID
	}
	for _, name := range []string{"Work", "Done"} {
		if u.mailboxes[name] != "" {
			continue
		}
		var made struct {
			Created map[string]struct{ ID string }
		}
		if err := u.call(ctx, l, "Mailbox/set", map[string]any{"create": map[string]any{"m": map[string]any{"name": name}}}, &made); err != nil {
			return err
		}
		if u.mailboxes[name] = made.Created["m"].ID; u.mailboxes[name] == "" {
			return fmt.Errorf("%w to create the mailbox %s", errRefused, name)
		}
	}
	if err := u.check(ctx, l); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := u.step(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// check reads both mailboxes. They must be as before the pending change, or as after it.
func (u *jmapUser) check(ctx context.Context, l *life) error {
	have := map[string]jmapEmail{}
	for _, name := range []string{"Work", "Done"} {
		var query struct{ IDs []string }
		if err := u.call(ctx, l, "Email/query", map[string]any{"filter": map[string]any{"inMailbox": u.mailboxes[name]}}, &query); err != nil {
			return err
		}
		var got struct {
			State string
			List  []struct {
				ID, BlobID string
				Keywords   map[string]bool
				MailboxIDs map[string]bool
			}
		}
		if err := u.call(ctx, l, "Email/get", map[string]any{"ids": query.IDs, "properties": []string{"blobId", "keywords", "mailboxIds"}}, &got); err != nil {
			return err
		}
		for _, e := range got.List {
			text, err := u.send(ctx, l, http.MethodGet, "/jmap/download/"+u.account+"/"+e.BlobID+"/mail", "")
			if err != nil {
				return err
			}
			if u.removed[e.ID] {
				u.broken("the message %s was destroyed and is there", e.ID)
			}
			have[e.ID] = jmapEmail{string(text), strings.Join(slices.Sorted(maps.Keys(e.Keywords)), " "), name, e.BlobID}
			if len(e.MailboxIDs) != 1 || !e.MailboxIDs[u.mailboxes[name]] {
				u.broken("the message %s in %s is in the mailboxes %v", e.ID, name, e.MailboxIDs)
			}
		}
	}
	if u.state != "" { // the state that was told before is still known
		var changes struct{ NewState string }
		if err := u.call(ctx, l, "Email/changes", map[string]any{"sinceState": u.state}, &changes); err != nil {
			return err
		}
	}
	if before := u.differs(have, nil); before != "" {
		if after := u.differs(have, u.pending); u.pending == nil || after != "" {
			u.broken("before the pending change %+v: %s; after it: %s", u.pending, before, after)
		}
	}
	u.emails, u.pending = have, nil
	return nil
}

// differs says how the mailboxes differ from what they must be with a change.
func (u *jmapUser) differs(have map[string]jmapEmail, with *jmapChange) string {
	want := maps.Clone(u.emails)
	var imported *jmapEmail
	if with != nil {
		imported = with.added
		if with.id != "" {
			if with.to == nil {
				delete(want, with.id)
			} else {
				want[with.id] = *with.to
			}
		}
	}
	for id, e := range have {
		w, known := want[id]
		if !known {
			if imported == nil || !imported.equals(e) || u.emails[id].text != "" {
				return fmt.Sprintf("%s, %+v, is not expected", id, e)
			}
			imported = nil
			continue
		}
		if !w.equals(e) {
			return fmt.Sprintf("%s is %+v, want %+v", id, e, w)
		}
		delete(want, id)
	}
	if len(want) > 0 || imported != nil {
		return fmt.Sprintf("%d messages are missing, and the imported one: %t", len(want), imported != nil)
	}
	return ""
}

func (e jmapEmail) equals(other jmapEmail) bool {
	return e.text == other.text && e.keywords == other.keywords && e.mailbox == other.mailbox && (e.blob == "" || e.blob == other.blob)
}

// step makes a change.
func (u *jmapUser) step(ctx context.Context, l *life) error {
	ids := slices.Sorted(maps.Keys(u.emails))
	choice := u.random.IntN(10)
	if len(ids) == 0 || choice < 3 && len(ids) < most {
		return u.bringIn(ctx, l)
	}
	id := ids[u.random.IntN(len(ids))]
	e := u.emails[id]
	switch {
	case choice < 6:
		keywords := map[string]bool{}
		for _, k := range []string{"$answered", "$flagged", "$seen", "own"} {
			if u.random.IntN(2) == 0 {
				keywords[k] = true
			}
		}
		e.keywords = strings.Join(slices.Sorted(maps.Keys(keywords)), " ")
		return u.set(ctx, l, "keywords", &jmapChange{id: id, to: &e}, map[string]any{"update": map[string]any{id: map[string]any{"keywords": keywords}}})
	case choice < 8:
		e.mailbox = map[string]string{"Work": "Done", "Done": "Work"}[e.mailbox]
		return u.set(ctx, l, "mailbox", &jmapChange{id: id, to: &e}, map[string]any{"update": map[string]any{id: map[string]any{"mailboxIds": map[string]bool{u.mailboxes[e.mailbox]: true}}}})
	default:
		return u.set(ctx, l, "destroy", &jmapChange{id: id}, map[string]any{"destroy": []string{id}})
	}
}

// set calls Email/set for one message.
func (u *jmapUser) set(ctx context.Context, l *life, what string, change *jmapChange, args map[string]any) error {
	u.pending = change
	var set struct {
		NewState  string
		Updated   map[string]json.RawMessage
		Destroyed []string
	}
	if err := u.call(ctx, l, "Email/set", args, &set); err != nil {
		return err
	}
	if _, updated := set.Updated[change.id]; !updated && !slices.Contains(set.Destroyed, change.id) {
		return fmt.Errorf("%w to change %s: %+v", errRefused, change.id, set)
	}
	u.pending, u.state = nil, set.NewState
	if change.to != nil {
		u.emails[change.id] = *change.to
	} else {
		delete(u.emails, change.id)
		u.removed[change.id] = true
	}
	u.m.count(what)
	return nil
}

// bringIn uploads and imports a message.
func (u *jmapUser) bringIn(ctx context.Context, l *life) error {
	u.sent++
	e := &jmapEmail{mailbox: "Work", keywords: "$seen", text: fmt.Sprintf("Subject: import-%d\r\nMessage-ID: <import-%[1]d@example.org>\r\n\r\n%s\r\n", u.sent, strings.Repeat("text ", u.random.IntN(100)))}
	answer, err := u.send(ctx, l, http.MethodPost, "/jmap/upload/"+u.account+"/", e.text)
	if err != nil {
		return err
	}
	var upload struct{ BlobID string }
	if err := json.Unmarshal(answer, &upload); err != nil {
		return err
	}
	u.pending = &jmapChange{added: e}
	var imported struct {
		NewState string
		Created  map[string]struct{ ID, BlobID string }
	}
	if err := u.call(ctx, l, "Email/import", map[string]any{"emails": map[string]any{"k": map[string]any{"blobId": upload.BlobID,
		"mailboxIds": map[string]bool{u.mailboxes["Work"]: true}, "keywords": map[string]bool{"$seen": true}}}}, &imported); err != nil {
		return err
	}
	made := imported.Created["k"]
	if made.ID == "" {
		return fmt.Errorf("%w to import a message: %+v", errRefused, imported)
	}
	if _, twice := u.emails[made.ID]; twice || u.removed[made.ID] {
		u.broken("the id %s was given twice", made.ID)
	}
	e.blob = made.BlobID
	u.pending, u.state, u.emails[made.ID] = nil, imported.NewState, *e
	u.m.count("import")
	return nil
}
