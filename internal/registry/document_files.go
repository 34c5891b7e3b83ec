package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
)

// TemplateFiles are the files that go with the mails of a template, or of a variant.
type TemplateFiles struct {
	Attachments []TemplateFile          `json:"attachments,omitempty"`
	Images      map[string]TemplateFile `json:"images,omitempty"` // by the name under which HTML shows it: cid:NAME
}

// A TemplateFile is one of them. A document has its bytes, or the sum of one that a
// template of the service has already; what is kept of a template has the sum alone.
type TemplateFile struct {
	Name    string      `json:"name"`
	Type    string      `json:"type,omitempty"`
	Size    int         `json:"size"`
	SHA256  fanfare.Sum `json:"sha256"`
	Content []byte      `json:"content,omitempty"` // in JSON base64
}

// maxContentBytes is how large one file may be, whatever the server's settings say.
const maxContentBytes = 16 << 20

// attachments reads a list of files.
func (n node) attachments() (all []TemplateFile) {
	n.each(func(v node) { all = append(all, v.enclosed("")) })
	return all
}

// images reads files by name.
func (n node) images() map[string]TemplateFile {
	all := map[string]TemplateFile{}
	n.members(func(name string, v node) { all[name] = v.enclosed(name) })
	return all
}

// enclosed reads one file; an image needs no name of its own.
func (n node) enclosed(image string) (f TemplateFile) {
	given := 0
	n.fields(fields{
		"name": func(v node) { f.Name = v.line() },
		"type": func(v node) { f.Type = v.line() },
		"file": func(v node) {
			given++
			name := v.text()
			f.Content = v.bytesOf(name, maxContentBytes)
			if f.Name == "" && !n.has("name") {
				f.Name = path.Base(strings.ReplaceAll(name, "\\", "/"))
			}
		},
		"content": func(v node) {
			given++
			f.Content = v.base64()
		},
		"sha256": func(v node) {
			if err := f.SHA256.UnmarshalText([]byte(v.text())); err != nil {
				v.fault("leave it away, and give the file", "%v", err)
			}
		},
		"size": func(v node) { f.Size = v.number(0, 1<<40) },
	})
	switch {
	case given == 0 && !n.has("sha256"):
		n.fault("give file, a path beside the document, or content in base64", "there is no file")
	case given > 1:
		n.fault("", "has both file and content")
	case given == 1 && f.Content != nil:
		said := f.SHA256
		f.Size, f.SHA256 = len(f.Content), fanfare.SumOf(f.Content)
		if n.has("sha256") && said != f.SHA256 {
			n.fault("leave sha256 away", "the content has another SHA-256")
		}
	}
	if f.Name == "" && image != "" {
		f.Name = image
	}
	return f
}

// base64 reads bytes, which may stand in several lines.
func (n node) base64() []byte {
	text := n.text()
	if index, ok := strings.CutPrefix(text, liftedMark); ok {
		if i, err := strconv.Atoi(index); err == nil && i >= 0 && i < len(n.p.lifted) {
			text = n.p.lifted[i]
		}
	}
	if strings.ContainsAny(text, " \t\r\n") {
		text = strings.Join(strings.Fields(text), "")
	}
	content, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		n.fault("write it as base64 (RFC 4648, section 4)", "the content is not base64")
		return nil
	case len(content) > maxContentBytes:
		n.fault("", "the file has %d bytes, more than %d", len(content), maxContentBytes)
		return nil
	}
	return content
}

const (
	// liftedMark stands before the number of a text that was lifted out; it has a
	// character that base64 has not.
	liftedMark = "lifted:"
	// liftBytes is from which length on a text is lifted out.
	liftBytes = 4 << 10
)

// lift takes the long contents of files out of a document in JSON: the parser, which is
// one of YAML, takes fifty times the memory of what it reads, and a second for some
// megabytes. Lines stay what they were.
func lift(b []byte) (thin []byte, lifted []string) {
	if len(b) < liftBytes || !bytes.Contains(b, []byte(`"content"`)) || !json.Valid(b) {
		return b, nil
	}
	thin = make([]byte, 0, min(len(b), maxDocumentBytes))
	key, rest := "", b
	for {
		open := bytes.IndexByte(rest, '"')
		if open < 0 {
			break
		}
		text, isKey := stringAt(rest[open:])
		thin = append(thin, rest[:open]...)
		rest = rest[open+len(text):]
		switch {
		case isKey:
			key = string(text[:min(len(text), 16)])
		case key == `"content"` && len(text) >= liftBytes && bytes.IndexByte(text, '\\') < 0:
			thin = append(thin, `"`+liftedMark+strconv.Itoa(len(lifted))+`"`...)
			lifted = append(lifted, string(text[1:len(text)-1]))
			continue
		default:
			key = ""
		}
		thin = append(thin, text...)
	}
	return append(thin, rest...), lifted
}

// stringAt is the string of valid JSON with which b begins, with its quotes, and whether
// it is the name of a member.
func stringAt(b []byte) (text []byte, isKey bool) {
	end := 1
	for {
		end += bytes.IndexByte(b[end:], '"')
		escapes := 0
		for b[end-1-escapes] == '\\' {
			escapes++
		}
		end++
		if escapes%2 == 0 {
			break
		}
	}
	after := bytes.TrimLeft(b[end:min(len(b), end+64)], " \t\r\n")
	return b[:end], len(after) > 0 && after[0] == ':'
}
