package messages

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/render/mime"
)

// fileBytes is the stored size of a file in an event, which does not contain its bytes.
const fileBytes = 512

// takeFiles checks the files of a request and adds them to the event.
func (m *Messages) takeFiles(d *draft, request *wire.MessageRequest) error {
	if len(request.Attachments) == 0 {
		return nil
	}
	if d.channel.SendsDocuments() {
		return &fanfare.Error{Code: fanfare.Invalid, Pointer: "/attachments", Message: "channel " + d.channel.Name + " sends JSON documents, which cannot have attachments", Hint: "put links to the files in the data instead"}
	}
	d.files = make(map[fanfare.Sum][]byte, len(request.Attachments))
	names := map[string]bool{}
	for i := range request.Attachments {
		sent := &request.Attachments[i]
		file := fanfare.File{Name: sent.Name, Image: sent.CID, Size: len(sent.Content), Sum: fanfare.SumOf(sent.Content)}
		at := fmt.Sprintf("/attachments/%d", i)
		typeOf, key := m.options.Files.Attachment, "name "+strings.ToLower(file.Name)
		if file.Image != "" {
			typeOf, key = filetype.Image, "cid "+file.Image
		}
		var err error
		switch {
		case file.Image != "" && request.Content == nil:
			err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/cid", Message: "only a message with content can use images from the request; a template uses its own images", Hint: "omit cid to attach the file"}
		case names[key]:
			err = &fanfare.Error{Code: fanfare.Invalid, Message: "two files have the same " + key, Hint: "rename one of them"}
		case file.Size == 0:
			err = &fanfare.Error{Code: fanfare.Invalid, Pointer: "/content", Message: "the file is empty", Hint: "set content to the Base64-encoded bytes of the file"}
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

// checkFiles refuses files that are too large for an email, and content that uses a missing image.
func (m *Messages) checkFiles(d *draft, template *render.Template) error {
	if d.posted.Direct.Content != nil {
		if err := template.CheckFiles(m.options.MaxBytes); err != nil {
			if e, ok := errors.AsType[*fanfare.Error](err); ok && strings.Contains(e.Message, "no such image") {
				e.Hint = "add the image to attachments, with that cid"
			}
			return err
		}
	}
	if len(d.posted.Direct.Files) == 0 {
		return nil
	}
	if size := mime.EncodedSize(append(template.Files(), d.posted.Direct.Files...)); size > m.options.MaxBytes {
		return &fanfare.Error{Code: fanfare.TooLarge, Pointer: "/attachments", Message: fmt.Sprintf("the files of the message and its template need %d bytes in an email; at most %d are allowed", size, m.options.MaxBytes),
			Hint: "link to large files, or increase the server setting max_attachments if the relays accept larger messages"}
	}
	return nil
}

// content reads a file from the request or its template.
func (d *draft) content(ctx context.Context, templates *registry.Registry) func(*fanfare.File) ([]byte, error) {
	return func(f *fanfare.File) ([]byte, error) {
		if content, ok := d.files[f.Sum]; ok {
			return content, nil
		}
		return templates.File(ctx, f.Sum)
	}
}

// keepFiles stores the files of a message with the day of the message, before it is accepted.
func (m *Messages) keepFiles(ctx context.Context, d *draft) error {
	if len(d.files) == 0 {
		return nil
	}
	contents := make([][]byte, 0, len(d.files))
	for _, f := range d.posted.Direct.Files {
		if content, ok := d.files[f.Sum]; ok {
			contents = append(contents, content)
			delete(d.files, f.Sum) // once, even if it has several names
		}
	}
	return m.options.Store.KeepFiles(ctx, fanfare.DayOf(d.posted.ReceivedAt), contents...)
}
