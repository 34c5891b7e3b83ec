package captured

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// notFound is the error for an id of which the caller has no message.
func notFound(id string) error {
	return &fanfare.Error{Code: fanfare.NotFound, Message: "captured message " + strconv.Quote(id[:min(len(id), 100)]) + " does not exist", Hint: "list the captured messages; those that were sent are not in the list"}
}

// find opens the message with an id in the folders of a service, or of all with "".
func (m *Messages) find(service, id string) (*os.File, wire.CapturedMessage, source, error) {
	ref, ok := refOf(id + extension)
	if !ok {
		return nil, wire.CapturedMessage{}, source{}, notFound(id)
	}
	for _, s := range m.sources(service) {
		file, described, err := open(&s, ref)
		if err == nil {
			return file, described, s, nil
		}
	}
	return nil, wire.CapturedMessage{}, source{}, notFound(id)
}

// open opens a message of a source.
func open(s *source, ref fanfare.DeliveryRef) (*os.File, wire.CapturedMessage, error) {
	root, err := s.open()
	if err != nil {
		return nil, wire.CapturedMessage{}, err
	}
	defer func() { _ = root.Close() }()
	described, err := readHead(root, ref, s)
	if err != nil {
		return nil, described, err
	}
	file, _, err := openFile(root, ref)
	return file, described, err
}

// A message is one that was read and parsed.
type message struct {
	wire.CapturedMessage
	data        []byte
	tree        *mimetree.Part
	parts       []part
	text, html  *mimetree.Part // nil: there is none
	attachments []*mimetree.Part
}

// A part is a part of a message with its number.
type part struct {
	number string
	*mimetree.Part
}

// parse reads a message, and passes it to use. Only some messages are in memory at the same time.
func (m *Messages) parse(ctx context.Context, service, id string, use func(*message) error) error {
	select {
	case m.parsing <- struct{}{}:
		defer func() { <-m.parsing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	file, described, _, err := m.find(service, id)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if described.SizeBytes > maxMessageBytes {
		return tooLarge("the message", described.SizeBytes, maxMessageBytes)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxMessageBytes))
	if err != nil {
		return unreadable(err)
	}
	return use(newMessage(described, data))
}

func newMessage(described wire.CapturedMessage, data []byte) *message {
	one := &message{CapturedMessage: described, data: data, tree: mimetree.Parse(data)}
	one.walk("", one.tree)
	for _, p := range one.parts {
		if !p.IsMultipart() && p.Part != one.text && p.Part != one.html {
			one.attachments = append(one.attachments, p.Part)
		}
	}
	return one
}

func tooLarge(what string, size, most int64) error {
	return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("%s has %d bytes; at most %d are shown", what, size, most), Hint: "download the message: GET /v1/captured/{id}/source"}
}

// walk lists the parts, without those of messages that are attached.
func (m *message) walk(number string, p *mimetree.Part) {
	if len(m.parts) == maxListed {
		return
	}
	m.parts = append(m.parts, part{number, p})
	if p.IsMultipart() {
		for i, child := range p.Children {
			at := strconv.Itoa(i + 1)
			if number != "" {
				at = number + "." + at
			}
			m.walk(at, child)
		}
		return
	}
	body := !strings.EqualFold(p.Disposition, "attachment")
	switch kind := typeOf(p); {
	case body && m.html == nil && kind == "text/html":
		m.html = p
	case body && m.text == nil && (kind == "text/plain" || m.Kind == webhookKind):
		m.text = p
	}
}

// typeOf returns the media type of a part in lower case.
func typeOf(p *mimetree.Part) string {
	return strings.ToLower(textOf([]byte(p.Type + "/" + p.Subtype)))
}

// Show returns a message with its content.
func (m *Messages) Show(ctx context.Context, service, id string) (content wire.CapturedContent, err error) {
	err = m.parse(ctx, service, id, func(one *message) error {
		content = wire.CapturedContent{CapturedMessage: one.CapturedMessage, HTML: one.html != nil}
		for f := range mimetree.Fields(one.data[one.tree.Header.From:one.tree.Header.To]) {
			if len(content.Headers) == maxListed {
				break
			}
			content.Headers = append(content.Headers, wire.CapturedHeader{Name: clipped(textOf([]byte(f.Name)), 200), Value: textOf(f.Value)})
		}
		for _, p := range one.parts {
			content.Parts = append(content.Parts, wire.CapturedPart{Number: p.number, Type: clipped(typeOf(p.Part), 200), Charset: clipped(textOf([]byte(p.Param("charset"))), 100), SizeBytes: p.Body.Len()})
		}
		if one.text != nil {
			text := mimetree.Text(one.text, one.data)
			content.Text = clipped(text, maxTextBytes)
			content.TextTruncated = len(content.Text) < len(text)
		}
		if one.html != nil && one.html.Body.Len() <= maxHTMLBytes {
			content.Links = linksIn(mimetree.Text(one.html, one.data))
		}
		for i, p := range one.attachments {
			body, err := mimetree.Decode(p, one.data)
			if err != nil {
				body = one.data[p.Body.From:p.Body.To]
			}
			content.Attachments = append(content.Attachments, wire.CapturedAttachment{Number: i + 1, Name: fileName(p.Filename(), i+1), Type: clipped(typeOf(p), 200), ContentID: clipped(contentID(p), 200), SizeBytes: int64(len(body))})
		}
		return nil
	})
	return content, err
}

// contentID returns the id of a part without its brackets.
func contentID(p *mimetree.Part) string {
	return strings.Trim(textOf([]byte(p.ID)), "<>")
}

// clipped returns the start of a text that is not longer than most bytes.
func clipped(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// fileName returns a name of an attachment that is safe for all file systems: without folders, control characters, and characters that change the direction
// of writing.
func fileName(name string, number int) string {
	name = name[strings.LastIndexAny(name, `/\:`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		case strings.ContainsRune(`<>"|?*%;`, r):
			return '_'
		}
		return r
	}, name)
	name = strings.Trim(clipped(name, 120), ". ")
	if name == "" {
		return "attachment-" + strconv.Itoa(number)
	}
	return name
}

// Attachment returns an attachment by its number.
func (m *Messages) Attachment(ctx context.Context, service, id string, number int) (name string, content []byte, err error) {
	err = m.parse(ctx, service, id, func(one *message) error {
		if number < 1 || number > len(one.attachments) {
			return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the message has no attachment %d", number), Hint: "get the message for the numbers of its attachments"}
		}
		p := one.attachments[number-1]
		body, err := mimetree.Decode(p, one.data)
		if err != nil {
			body = one.data[p.Body.From:p.Body.To]
		}
		name, content = fileName(p.Filename(), number), body
		return nil
	})
	return name, content, err
}

// Source opens a message as it was written. The caller closes it.
func (m *Messages) Source(service, id string) (file io.ReadCloser, size int64, err error) {
	f, described, _, err := m.find(service, id)
	if err != nil {
		return nil, 0, err
	}
	return f, described.SizeBytes, nil
}

// Delete removes a captured message. It refuses to remove one that a channel with the driver file has sent.
func (m *Messages) Delete(service, id string) error {
	file, described, s, err := m.find(service, id)
	if err != nil {
		return err
	}
	_ = file.Close() // nothing was written
	if !s.captured {
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the message was not captured: the channel " + s.channel + " writes to a folder (driver file)", Hint: "remove the file from the folder of the channel"}
	}
	root, err := s.open()
	if err != nil {
		return unreadable(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.Remove(described.ID + extension); err != nil && !os.IsNotExist(err) {
		return unreadable(err)
	}
	return nil
}

// Clear removes the captured messages of a service, or of all with "", and returns their number. Those that are captured meanwhile can remain.
func (m *Messages) Clear(ctx context.Context, service string) (removed int, err error) {
	for _, s := range m.captures(service) {
		n, err := clearFolder(ctx, &s)
		removed += n
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}

func clearFolder(ctx context.Context, s *source) (removed int, err error) {
	root, err := s.open()
	if err != nil {
		return 0, unreadable(err)
	}
	defer func() { _ = root.Close() }()
	for ref, err := range filesIn(ctx, root) {
		if err != nil {
			return removed, err
		}
		if err := root.Remove(ref.String() + extension); err != nil && !os.IsNotExist(err) {
			return removed, unreadable(err)
		}
		removed++
	}
	return removed, nil
}
