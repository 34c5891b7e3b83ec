package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/mail"
	"strings"

	"fanfare.dev/fanfare/client"
)

// enclosedIn takes the files out of the message of a preview, to send them with what it
// says, and has its HTML name the images among them as a message does.
func enclosedIn(p *client.Preview) (files []client.MessageFile, err error) {
	if len(p.Attachments) == 0 {
		return nil, nil
	}
	contents := map[string][]byte{}
	m, err := mail.ReadMessage(strings.NewReader(p.Raw))
	if err == nil {
		err = eachFile(m.Header.Get("Content-Type"), m.Body, func(name string, content []byte) { contents[name] = content })
	}
	if err != nil {
		return nil, fmt.Errorf("read the files of the preview: %w", err)
	}
	for _, f := range p.Attachments {
		name := f.Name
		if f.CID != "" {
			id := f.SHA256[:min(32, len(f.SHA256))] + "@fanfare"
			p.HTML, name = strings.ReplaceAll(p.HTML, "cid:"+id, "cid:"+f.CID), "<"+id+">"
		}
		files = append(files, client.MessageFile{Name: f.Name, Type: f.Type, CID: f.CID, Content: contents[name]})
	}
	return files, nil
}

// eachFile visits the parts of a message that are files, by their Content-ID or by their
// file name.
func eachFile(contentType string, body io.Reader, visit func(name string, content []byte)) error {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil || params["boundary"] == "" {
		return err
	}
	for parts := multipart.NewReader(body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		of := part.Header.Get("Content-Type")
		name := part.Header.Get("Content-ID")
		if name == "" {
			name = part.FileName()
		}
		switch {
		case strings.HasPrefix(of, "multipart/"):
			err = eachFile(of, part, visit)
		case name != "" && part.Header.Get("Content-Transfer-Encoding") == "base64":
			var content []byte
			content, err = io.ReadAll(base64.NewDecoder(base64.StdEncoding, part))
			visit(name, content)
		}
		if err != nil {
			return err
		}
	}
}
