package files

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/store/control"
)

// Limits of a file.
const (
	MaxBytes     = 2 << 20
	maxNameRunes = 100
	week         = 7 * 24 * time.Hour
	defaultWeeks = 26
	maxWeeks     = 78
)

// types are the media types of the files that Notify sends, by extension.
var types = map[string]string{
	"csv": "text/csv", "doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json", "odt": "application/vnd.oasis.opendocument.text",
	"pdf": "application/pdf", "png": "image/png", "rtf": "application/rtf", "txt": "text/plain",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}

const supported = "Supported types are: '.csv, .doc, .docx, .jpeg, .jpg, .json, .odt, .pdf, .png, .rtf, .txt, .xlsx'"

// Is reports whether a value of a personalisation is a file.
func Is(value any) bool {
	object, ok := value.(map[string]any)
	if !ok {
		return false
	}
	_, ok = object["file"]
	return ok
}

// An upload is a file that is valid.
type upload struct {
	name, media string
	content     []byte
	ask         bool
	retention   time.Duration
}

// Check returns an error if a value of a personalisation is not a valid file, and stores nothing.
func Check(value any) error {
	_, err := read(value)
	return err
}

// Upload stores the file that a value of a personalisation contains, and returns the link to its
// page. base is the address of the listener. It is durable when it returns.
func (f *Files) Upload(ctx context.Context, service, recipient string, value any, base string) (link string, err error) {
	u, err := read(value)
	if err != nil {
		return "", err
	}
	key, text := newKey()
	hash := f.recipient(service, recipient)
	sealed, err := seal(key, &details{Name: u.name, Type: u.media, Ask: u.ask, Recipient: hash}, u.content)
	if err != nil {
		return "", err
	}
	err = f.options.Store.AddLinkedFile(ctx, &control.LinkedFile{ID: idOf(key), Service: service, Recipient: hash, ExpiresAt: f.options.Clock.Now().Add(u.retention).Unix(), Content: sealed})
	if err != nil {
		return "", control.UserError(err, "the file could not be stored")
	}
	return strings.TrimSuffix(base, "/") + pathHead + text, nil
}

// read reads a value. Null is the same as an absent member.
func read(value any) (*upload, error) {
	object, ok := value.(map[string]any)
	if !ok {
		return nil, invalid("the file is not a JSON object")
	}
	encoded, ok := object["file"].(string)
	if !ok {
		return nil, invalid("file must be the file in base64")
	}
	u := &upload{ask: true, retention: defaultWeeks * week}
	if base64.StdEncoding.DecodedLen(len(encoded)) > MaxBytes+3 {
		return nil, tooBig()
	}
	var err error
	if u.content, err = base64.StdEncoding.DecodeString(encoded); err != nil {
		return nil, invalid("file is not valid base64")
	}
	switch {
	case len(u.content) > MaxBytes:
		return nil, tooBig()
	case len(u.content) == 0:
		return nil, invalid("file is empty")
	}
	if v := object["confirm_email_before_download"]; v != nil {
		if u.ask, ok = v.(bool); !ok {
			return nil, invalid("Unsupported value for confirm_email_before_download: '" + show(v) + "'. Use a boolean true or false value.")
		}
	}
	if v := object["retention_period"]; v != nil {
		if u.retention, ok = retentionOf(v); !ok {
			return nil, invalid("Unsupported value for retention_period '" + show(v) + "'. Supported periods are from 1 to 78 weeks.")
		}
	}
	csv := false
	if v := object["is_csv"]; v != nil {
		if csv, ok = v.(bool); !ok {
			return nil, invalid("Unsupported value for is_csv: '" + show(v) + "'. Use a boolean true or false value.")
		}
	}
	if v := object["filename"]; v != nil {
		if u.name, ok = v.(string); !ok {
			return nil, invalid("filename must be a text")
		}
	}
	if csv && u.name != "" {
		return nil, invalid("Do not set a value for is_csv if filename is set.")
	}
	return u, u.setType(csv)
}

// setType sets the media type, and the name of a file without one.
func (u *upload) setType(csv bool) error {
	if u.name == "" {
		extension := extensionOf(u.content)
		if csv {
			extension = "csv"
		}
		if types[extension] == "" {
			return invalid("Unsupported file type. " + supported)
		}
		u.name = "document." + extension
	}
	dot := strings.LastIndexByte(u.name, '.')
	switch {
	case utf8.RuneCountInString(u.name) > maxNameRunes:
		return invalid("filename cannot be longer than 100 characters")
	case dot <= 0 || dot == len(u.name)-1:
		return invalid("filename must end with a file extension. For example, filename.csv")
	}
	extension := strings.ToLower(u.name[dot+1:])
	if u.media = types[extension]; u.media == "" {
		return invalid("Unsupported file type '" + show(extension) + "'. " + supported)
	}
	if _, err := filetype.Policy(nil).Attachment(u.name, u.media, u.content); err != nil {
		return invalid("The file was refused: " + err.Error())
	}
	return nil
}

// extensionOf returns the extension that the bytes of a file indicate; "" for no known one.
func extensionOf(content []byte) string {
	media, err := filetype.Policy(nil).Attachment("document", "", content)
	if err != nil {
		return ""
	}
	switch {
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		head := content[:min(len(content), 4096)]
		switch {
		case bytes.Contains(head, []byte(types["odt"])):
			return "odt"
		case bytes.Contains(content, []byte("word/document.xml")):
			return "docx"
		case bytes.Contains(content, []byte("xl/workbook.xml")):
			return "xlsx"
		}
		return ""
	case bytes.HasPrefix(content, []byte(`{\rtf`)):
		return "rtf"
	case bytes.HasPrefix(content, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")):
		return "doc"
	case strings.HasPrefix(media, "text/") && json.Valid(content) && strings.ContainsAny(string(content[:1]), "{["), media == types["json"]:
		return "json"
	case strings.HasPrefix(media, "text/plain"):
		return "txt"
	}
	for _, extension := range []string{"pdf", "png", "jpg"} {
		if types[extension] == media {
			return extension
		}
	}
	return ""
}

var period = regexp.MustCompile(`^([1-9][0-9]?) weeks?$`)

// retentionOf reads a retention period.
func retentionOf(value any) (time.Duration, bool) {
	text, _ := value.(string)
	found := period.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if found == nil {
		return 0, false
	}
	weeks, err := strconv.Atoi(found[1])
	return time.Duration(weeks) * week, err == nil && weeks <= maxWeeks
}

// show returns a value for an error, in one short line.
func show(value any) string {
	text, ok := value.(string)
	if !ok {
		raw, err := json.Marshal(value)
		if err != nil {
			return "?"
		}
		text = string(raw)
	}
	runes := slices.DeleteFunc([]rune(text), func(r rune) bool { return r < ' ' || r == utf8.RuneError })
	return string(runes[:min(len(runes), 40)])
}

func tooBig() error { return invalid("File is too big. Files must be smaller than 2MB") }

func invalid(message string) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: message}
}
