package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/jmap/header"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// emailImportArguments are those of Email/import (RFC 8621, section 4.8).
type emailImportArguments struct {
	core.InAccount
	IfInState *string     `json:"ifInState"`
	Emails    core.Object `json:"emails"`
}

// emailImport is Email/import.
func (m *Methods) emailImport(ctx context.Context, c *core.Call, a *emailImportArguments) (any, error) {
	if a.Emails == nil {
		return nil, core.Fail(core.InvalidArguments, "the argument emails is missing")
	}
	set := core.SetArguments{InAccount: a.InAccount, Create: a.Emails}
	if err := set.Check(c); err != nil {
		return nil, err
	}
	id, v, err := m.current(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := checkState(a.IfInState, v); err != nil {
		return nil, err
	}
	r := &core.SetResult{}
	for _, record := range a.Emails {
		made, failed, err := m.importOne(ctx, c, id, v, record.Value)
		if err != nil {
			return nil, err
		}
		if failed != nil {
			r.DidNotCreate(record.Name, failed)
			continue
		}
		c.Created(record.Name, emailID(made.Email))
		r.DidCreate(record.Name, createdEmail(made))
	}
	now, err := m.views.current(ctx, id)
	if err != nil {
		return nil, err
	}
	return map[string]any{"accountId": a.AccountID, "oldState": StateOf(v.state), "newState": StateOf(now.state), "created": r.Created, "notCreated": r.NotCreated}, nil
}

// importOne stores the message in a blob.
func (m *Methods) importOne(ctx context.Context, c *core.Call, id mailbox.AccountID, v *view, text json.RawMessage) (*mailbox.Message, *core.SetError, error) {
	properties, err := core.ParseObject(text)
	if err != nil {
		return nil, core.Invalid("the record cannot be read"), nil
	}
	var record struct {
		BlobID    core.ID           `json:"blobId"`
		Mailboxes map[core.ID]*bool `json:"mailboxIds"`
		Keywords  map[string]*bool  `json:"keywords"`
		Received  *core.UTCDate     `json:"receivedAt"`
	}
	if failed := core.DecodeProperties(properties, &record); failed != nil {
		return nil, failed, nil
	}
	data, err := m.Blob(ctx, id, record.BlobID)
	if isGone(err) {
		return nil, &core.SetError{Type: core.SetInvalidProperties, Properties: []string{"blobId"}, Description: fmt.Sprintf("the blob %.80q does not exist", record.BlobID)}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var n mailbox.NewMessage
	var failed *core.SetError
	if n.Mailbox, failed = oneMailbox(c, v, record.Mailboxes); failed != nil {
		return nil, failed, nil
	}
	if n.Flags, n.Keywords, failed = parseKeywords(record.Keywords); failed != nil {
		return nil, failed, nil
	}
	if err := checkMessage(data); err != nil {
		return nil, &core.SetError{Type: core.SetInvalidEmail, Description: err.Error()}, nil
	}
	n.Content = withLineEnds(data)
	n.Received = receivedAt(n.Content)
	if record.Received != nil {
		n.Received = record.Received.Time
	}
	return m.append(ctx, id, n)
}

// checkMessage refuses bytes that are no message: those that do not begin with a field.
func checkMessage(data []byte) error {
	for f := range mimetree.Fields(data) {
		if !bytes.HasPrefix(f.Raw, []byte(f.Name+":")) || !fieldName.MatchString(f.Name) {
			break
		}
		return nil
	}
	return errors.New("the data are not a message: they do not begin with a header field")
}

// withLineEnds makes all line ends CR LF.
func withLineEnds(data []byte) []byte {
	n := bytes.Count(data, []byte("\n"))
	if n == bytes.Count(data, []byte("\r\n")) {
		return data
	}
	out := make([]byte, 0, len(data)+n)
	for i, c := range data {
		if c == '\n' && (i == 0 || data[i-1] != '\r') {
			out = append(out, '\r')
		}
		out = append(out, c)
	}
	return out
}

// receivedAt returns the time in the first Received field, or the zero time.
func receivedAt(message []byte) time.Time {
	for f := range mimetree.Fields(message) {
		if !bytes.EqualFold([]byte(f.Name), []byte("Received")) {
			continue
		}
		if i := bytes.LastIndexByte(f.Value, ';'); i >= 0 {
			if at, ok := header.Date(string(f.Value[i+1:])); ok && at.Year() > 1970 {
				return at
			}
		}
		break
	}
	return time.Time{}
}
