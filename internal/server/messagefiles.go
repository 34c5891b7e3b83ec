package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/mime"
)

// fileBytes is what a file takes in an event, which has all of it but its bytes.
const fileBytes = 512

// takeFiles checks the files of a request, and notes them in the event.
func (m *messages) takeFiles(d *draft, request *wire.MessageRequest) error {
	if len(request.Attachments) == 0 {
		return nil
	}
	if d.channel.Driver == "webhook" {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/attachments", Message: "channel " + d.channel.Name + " posts documents to programs, which get no files", Hint: "put links to them into the data"}
	}
	d.files = make(map[fanfare.Sum][]byte, len(request.Attachments))
	names := map[string]bool{}
	for i := range request.Attachments {
		sent := &request.Attachments[i]
		file := fanfare.File{Name: sent.Name, Image: sent.CID, Size: len(sent.Content), Sum: fanfare.SumOf(sent.Content)}
		at := fmt.Sprintf("/attachments/%d", i)
		typeOf, key := m.files.Attachment, "name "+strings.ToLower(file.Name)
		if file.Image != "" {
			typeOf, key = filetype.Image, "cid "+file.Image
		}
		var err error
		switch {
		case file.Image != "" && request.Content == nil:
			err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/cid", Message: "images are shown by the content of the message, and a template brings its own", Hint: "leave cid away, and the file is attached"}
		case names[key]:
			err = &fanfare.Error{Code: fanfare.Invalid, Message: "two files have the " + key, Hint: "give one of them another"}
		case file.Size == 0:
			err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/content", Message: "the file is empty", Hint: "give its bytes, in base64"}
		default:
			file.Type, err = typeOf(sent.Name, sent.Type, sent.Content)
		}
		if err != nil {
			return fanfare.Below(at, err)
		}
		names[key], d.files[file.Sum] = true, sent.Content
		d.posted.Direct.Files = append(d.posted.Direct.Files, file)
	}
	return nil
}

// checkFiles refuses more than a mail may have, and content that shows what is not there.
func (m *messages) checkFiles(d *draft, template *render.Template) error {
	if d.posted.Direct.Content != nil {
		if err := template.CheckFiles(m.most); err != nil {
			if e, ok := errors.AsType[*fanfare.Error](err); ok && strings.Contains(e.Message, "no such image") {
				e.Hint = "give it among the attachments, with that cid"
			}
			return err
		}
	}
	if len(d.posted.Direct.Files) == 0 {
		return nil
	}
	if size := mime.EncodedSize(append(template.Files(), d.posted.Direct.Files...)); size > m.most {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/attachments", Message: fmt.Sprintf("the files take %d bytes in a mail, with those of the template, more than %d", size, m.most),
			Hint: "link to what is large, or raise max_attachments of the server as far as the relays take it"}
	}
	return nil
}

// content reads the files of the request, and those of its template.
func (d *draft) content(ctx context.Context, templates *registry.Registry) func(*fanfare.File) ([]byte, error) {
	return func(f *fanfare.File) ([]byte, error) {
		if content, ok := d.files[f.Sum]; ok {
			return content, nil
		}
		return templates.File(ctx, f.Sum)
	}
}

// keepFiles keeps the files of a message before it is accepted, for the day on which it
// comes.
func (m *messages) keepFiles(ctx context.Context, d *draft) error {
	if len(d.files) == 0 {
		return nil
	}
	contents := make([][]byte, 0, len(d.files))
	for _, f := range d.posted.Direct.Files {
		if content, ok := d.files[f.Sum]; ok {
			contents = append(contents, content)
			delete(d.files, f.Sum) // once, whatever it is called
		}
	}
	return m.store.KeepFiles(ctx, fanfare.DayOf(d.posted.ReceivedAt), contents...)
}
