package document

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"path"
	"strconv"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/inputerror"
)

// maxContentBytes is the maximum size of one file, regardless of the settings of the server.
const maxContentBytes = 16 << 20

// attachments reads a list of files.
func (n node) attachments() (all []catalog.TemplateFile) {
	n.each(func(v node) { all = append(all, v.enclosed("")) })
	return all
}

// images reads files by name.
func (n node) images() map[string]catalog.TemplateFile {
	all := map[string]catalog.TemplateFile{}
	n.members(func(name string, v node) { all[name] = v.enclosed(name) })
	return all
}

// enclosed reads one file; an image needs no name of its own.
func (n node) enclosed(image string) (f catalog.TemplateFile) {
	given := 0
	n.fields(fieldReaders{
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
				v.fault("omit sha256, and set file or content", "%v", err)
			}
		},
		"size": func(v node) { f.Size = v.number(0, 1<<40) },
	})
	switch {
	case given == 0 && !n.has("sha256"):
		n.fault("set file to a path relative to the document, or content to the base64-encoded content", "file and content are missing")
	case given > 1:
		n.fault("", "both file and content are set")
	case given == 1 && f.Content != nil:
		said := f.SHA256
		f.Size, f.SHA256 = len(f.Content), fanfare.SumOf(f.Content)
		if n.has("sha256") && said != f.SHA256 {
			n.fault("omit sha256", "the SHA-256 of the content differs from sha256")
		}
	}
	if f.Name == "" && image != "" {
		f.Name = image
	}
	return f
}

// base64 reads base64, which may span several lines.
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
		n.fault("", "the file has %d bytes; at most %d are allowed", len(content), maxContentBytes)
		return nil
	}
	return content
}

const (
	// liftedMark stands before the number of a text that was lifted out; it has a
	// character that base64 has not.
	liftedMark = "lifted:"
	// liftBytes is the minimum length of a text that is lifted out.
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

// checkNote refuses a note that is not a short single line.
func checkNote(note string) error {
	switch {
	case strings.ContainsAny(note, "\r\n\x00"):
		return inputerror.Invalid("", "", "the note must be a single line")
	case len(note) > maxNoteBytes:
		return inputerror.TooLarge("", len(note), maxNoteBytes)
	}
	return nil
}

// words reads the fields of a variant, and those beside them.
func (n node) words(w *catalog.TemplateWords, beside fieldReaders) {
	known := fieldReaders{
		"subject":       func(v node) { w.Subject = v.text() },
		"subject_file":  func(v node) { w.Subject = strings.TrimRight(v.file(), "\r\n") },
		"text":          func(v node) { w.Text = v.text() },
		"text_file":     func(v node) { w.Text = v.file() },
		"html":          func(v node) { w.HTML = v.text() },
		"html_file":     func(v node) { w.HTML = v.file() },
		"json":          func(v node) { w.JSON = v.text() },
		"json_file":     func(v node) { w.JSON = v.file() },
		"markdown":      func(v node) { w.Markdown = v.text() },
		"markdown_file": func(v node) { w.Markdown = v.file() },
		"attachments":   func(v node) { w.Attachments = v.attachments() },
		"images":        func(v node) { w.Images = v.images() },
	}
	for name, read := range beside {
		known[name] = read
	}
	n.fields(known)
	for _, part := range []string{"subject", "text", "html", "json", "markdown"} {
		n.oneOf(part, part+"_file")
	}
}

// variantFields are those of a template that says who gets what.
func variantFields(v *catalog.TemplateVariants) fieldReaders {
	devices := func(into *map[string]catalog.TemplateWords) func(node) {
		return func(n node) {
			*into = map[string]catalog.TemplateWords{}
			n.members(func(name string, n node) {
				var w catalog.TemplateWords
				n.words(&w, nil)
				(*into)[name] = w
			})
		}
	}
	return fieldReaders{
		"locales": func(n node) {
			v.Locales = map[string]catalog.TemplateLocale{}
			n.entries(func(tag string, n node) { // what is a tag is for who compiles to say
				var l catalog.TemplateLocale
				n.words(&l.TemplateWords, fieldReaders{"devices": devices(&l.Devices)})
				v.Locales[tag] = l
			})
		},
		"devices": devices(&v.Devices),
	}
}

// maxNoteBytes is the maximum size of a note.
const maxNoteBytes = 512
