package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mail/mimetree"
	"fanfare.dev/fanfare/internal/mailbox"
)

// emailGetArguments are those of Email/get (RFC 8621, section 4.2).
type emailGetArguments struct {
	core.InAccount
	IDs *[]core.ID `json:"ids"`
	fetchArguments
}

// emailGet is Email/get.
func (m *Methods) emailGet(ctx context.Context, c *core.Call, a *emailGetArguments) (any, error) {
	get := core.GetArguments{InAccount: a.InAccount, IDs: a.IDs}
	if err := get.Check(c, nil); err != nil {
		return nil, err
	}
	f, err := newFetch(a.fetchArguments)
	if err != nil {
		return nil, err
	}
	id, err := account(c)
	if err != nil {
		return nil, err
	}
	r := &core.GetResult{AccountID: a.AccountID, List: []any{}, NotFound: []core.ID{}}
	var found []mailbox.Message
	if get.IDs == nil {
		v, err := m.views.current(ctx, id)
		if err != nil {
			return nil, accountError(err)
		}
		if len(v.messages) > c.Limits.MaxObjectsInGet {
			return nil, core.Fail(core.RequestTooLarge, fmt.Sprintf("the account has %d messages, which are more than maxObjectsInGet; use Email/query", len(v.messages)))
		}
		found, r.State = v.messages, StateOf(v.state)
	} else {
		wanted := make([]mailbox.EmailID, 0, len(*get.IDs))
		for _, name := range *get.IDs {
			if n, ok := parseEmailID(name); ok {
				wanted = append(wanted, n)
			}
		}
		all, state, err := m.store.Emails(ctx, id, wanted)
		if err != nil {
			return nil, accountError(err)
		}
		r.State = StateOf(state)
		byID := make(map[core.ID]int, len(all))
		for i := range all {
			if all[i].Flags&mailbox.Deleted == 0 {
				byID[emailID(all[i].Email)] = i
			}
		}
		for _, name := range *get.IDs {
			if i, ok := byID[name]; ok {
				found = append(found, all[i])
			} else {
				r.NotFound = append(r.NotFound, name)
			}
		}
	}
	w := &writer{fetch: f, left: c.Left()}
	for i := range found {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		object, err := m.emailObject(ctx, id, &found[i], w)
		if errors.Is(err, mailbox.ErrNoMessage) { // it was removed meanwhile
			r.NotFound = append(r.NotFound, emailID(found[i].Email))
			continue
		}
		if err != nil {
			return nil, err
		}
		r.List = append(r.List, object)
	}
	return r, nil
}

// A writer makes Email objects, up to a number of bytes.
type writer struct {
	*fetch
	left int
}

// take counts bytes of a result.
func (w *writer) take(n int) error {
	if w.left -= n; w.left < 0 {
		return core.Fail(core.RequestTooLarge, fmt.Sprintf("the result has more than %d bytes; ask for fewer messages at a time, or set maxBodyValueBytes", core.MaxResponse))
	}
	return nil
}

// emailObject returns the properties of a message.
func (m *Methods) emailObject(ctx context.Context, account mailbox.AccountID, message *mailbox.Message, w *writer) (map[string]any, error) {
	object := map[string]any{"id": emailID(message.Email)}
	at := blob{email: message.Email}
	for _, property := range w.properties {
		switch property {
		case "blobId":
			object[property] = at.id()
		case "threadId":
			object[property] = threadID(message.Thread)
		case "mailboxIds":
			object[property] = map[core.ID]bool{mailboxID(message.Mailbox): true}
		case "keywords":
			object[property] = keywords(message)
		case "size":
			object[property] = message.Size
		case "receivedAt":
			object[property] = core.UTC(message.Received)
		}
	}
	switch {
	case w.needsContent:
		content, err := m.store.Content(ctx, account, message.Email)
		if err != nil {
			return nil, err
		}
		tree := mimetree.Parse(content)
		d, known := m.messages.get(keyOf(account, message))
		if !known && w.needsDigest {
			d = newDigest(content, tree)
			m.messages.put(keyOf(account, message), d)
		}
		if d != nil {
			w.digest(object, d)
		}
		if err := w.content(object, content, tree, at); err != nil {
			return nil, err
		}
	case w.needsDigest:
		d, err := m.digest(ctx, account, message)
		if err != nil {
			return nil, err
		}
		w.digest(object, d)
	}
	return object, w.take(500)
}

// keywords returns the keywords of a message.
func keywords(message *mailbox.Message) map[string]bool {
	all := map[string]bool{}
	for flag, keyword := range systemKeywords {
		if message.Flags&flag != 0 {
			all[keyword] = true
		}
	}
	for keyword := range strings.FieldsSeq(message.Keywords) {
		all[strings.ToLower(keyword)] = true
	}
	return all
}

// systemKeywords are the keywords of the system flags (section 4.1.1).
var systemKeywords = map[mailbox.Flags]string{mailbox.Seen: "$seen", mailbox.Answered: "$answered", mailbox.Flagged: "$flagged", mailbox.Draft: "$draft"}

// digest adds the properties that a digest has.
func (w *writer) digest(object map[string]any, d *digest) {
	block := []byte(d.header)
	for _, property := range w.properties {
		switch property {
		case "hasAttachment":
			object[property] = d.hasAttachment
		case "preview":
			object[property] = d.preview
		case "headers":
			object[property] = headerList(block)
			w.left -= len(block)
		}
	}
	for property, p := range w.headers {
		object[property] = p.value(block)
		w.left -= 100
	}
}

// content adds the properties of the body.
func (w *writer) content(object map[string]any, message []byte, tree *mimetree.Part, at blob) error {
	b := bodyOf(tree)
	s := &structure{writer: w, message: message, body: b, at: at}
	for _, property := range w.properties {
		switch property {
		case "bodyStructure":
			object[property] = s.part(tree, true)
		case "textBody":
			object[property] = s.list(b.text)
		case "htmlBody":
			object[property] = s.list(b.html)
		case "attachments":
			object[property] = s.list(b.attachments)
		case "bodyValues":
			values := map[string]any{}
			for _, l := range b.leaves {
				wanted := w.FetchAll || w.FetchText && slices.Contains(b.text, l) || w.FetchHTML && slices.Contains(b.html, l)
				if !wanted || !strings.HasPrefix(l.kind(), "text/") {
					continue
				}
				value := bodyValue(l, message, int(w.MaxBytes))
				if err := w.take(len(value["value"].(string))); err != nil {
					return err
				}
				values[strconv.Itoa(l.number)] = value
			}
			object[property] = values
		}
	}
	return w.take(0)
}

// bodyValue returns an EmailBodyValue (section 4.1.4).
func bodyValue(l *leaf, message []byte, most int) map[string]any {
	_, err := mimetree.Decode(l.Part, message)
	text := strings.ReplaceAll(mimetree.Text(l.Part, message), "\r\n", "\n")
	problem := err != nil || strings.Contains(text, "\ufffd")
	truncated := false
	if most > 0 && len(text) > most {
		truncated = true
		for most > 0 && !utf8.RuneStart(text[most]) {
			most--
		}
		if l.kind() == "text/html" { // not inside of a tag
			if open := strings.LastIndexByte(text[:most], '<'); open >= 0 && !strings.Contains(text[open:most], ">") {
				most = open
			}
		}
		text = text[:most]
	}
	return map[string]any{"value": text, "isEncodingProblem": problem, "isTruncated": truncated}
}

// structure makes EmailBodyPart objects.
type structure struct {
	*writer
	message []byte
	body    *body
	at      blob
}

func (s *structure) list(leaves []*leaf) []any {
	list := make([]any, len(leaves))
	for i, l := range leaves {
		list[i] = s.part(l.Part, false)
	}
	return list
}

// part returns an EmailBodyPart. In a tree, it has its subParts.
func (s *structure) part(p *mimetree.Part, inTree bool) map[string]any {
	object := map[string]any{}
	number := s.body.numbers[p]
	s.left -= 200
	for _, property := range s.fetch.body {
		if s.left < 0 {
			break // content reports it
		}
		switch property {
		case "partId":
			object[property] = s.body.partID(p)
		case "blobId":
			object[property] = nil
			if number > 0 {
				object[property] = s.at.below(number).id()
			}
		case "size":
			object[property] = decodedSize(p, s.message)
		case "name":
			object[property] = textOrNil(p.Filename())
		case "type":
			object[property] = validText(kindOf(p))
		case "charset":
			object[property] = nil
			if charset := p.Param("charset"); charset != "" {
				object[property] = validText(charset)
			} else if strings.EqualFold(p.Type, "text") {
				object[property] = "us-ascii"
			}
		case "disposition":
			object[property] = textOrNil(strings.ToLower(p.Disposition))
		case "cid":
			object[property] = textOrNil(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(p.ID), "<"), ">"))
		case "language":
			object[property] = nil
			if len(p.Language) > 0 {
				object[property] = p.Language
			}
		case "location":
			object[property] = textOrNil(strings.TrimSpace(p.Location))
		case "headers":
			object[property] = headerList(s.message[p.Header.From:p.Header.To])
			s.left -= int(p.Header.Len())
		case "subParts":
			object[property] = nil
			if number == 0 && inTree {
				object[property] = s.subParts(p)
			}
		}
	}
	if _, asked := object["subParts"]; inTree && number == 0 && !asked {
		object["subParts"] = s.subParts(p) // without them, the structure of a message would be its first part
	}
	for property, h := range s.bodyFields {
		object[property] = h.value(s.message[p.Header.From:p.Header.To])
	}
	return object
}

func (s *structure) subParts(p *mimetree.Part) []any {
	list := make([]any, len(p.Children))
	for i, child := range p.Children {
		list[i] = s.part(child, true)
	}
	return list
}

func textOrNil(text string) any {
	if text == "" {
		return nil
	}
	return validText(text)
}

// decodedSize returns the size of a part without its transfer encoding; of a multipart, it is 0.
func decodedSize(p *mimetree.Part, message []byte) int {
	if p.IsMultipart() {
		return 0
	}
	data, err := mimetree.Decode(p, message)
	if err != nil {
		return int(p.Body.Len())
	}
	return len(data)
}
