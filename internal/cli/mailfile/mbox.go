package mailfile

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// mboxSuffix is the end of the name of an mbox file.
const mboxSuffix = ".mbox"

func emptyDirectory(dir string) error {
	list, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o700)
	case err != nil:
		return err
	case len(list) > 0:
		return &fanfare.Error{Code: fanfare.Conflict, Message: "the directory " + dir + " is not empty", Hint: "name a new directory with --to"}
	}
	return nil
}

// An mboxWriter writes a file for each folder.
type mboxWriter struct {
	dir  string
	file *os.File
	out  *bufio.Writer
	name string
}

// Folder begins the file of a folder.
func (w *mboxWriter) Folder(name string) error {
	if w.file != nil && w.name == name {
		return nil
	}
	if err := w.Close(); err != nil {
		return err
	}
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	path := filepath.Join(w.dir, filepath.Join(parts...)+mboxSuffix)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w.file, w.out, w.name = file, bufio.NewWriterSize(file, 64<<10), name
	return nil
}

// Close finishes the file of the last folder.
func (w *mboxWriter) Close() error {
	if w.file == nil {
		return nil
	}
	err := errors.Join(w.out.Flush(), w.file.Close())
	w.file = nil
	return err
}

// Write appends a message to its folder. Its line ends become LF, and its flags three header fields at the beginning.
func (w *mboxWriter) Write(m *Message) error {
	if err := w.Folder(m.Folder); err != nil {
		return err
	}
	status, more, keywords := "O", "", make([]string, 0, len(m.Flags))
	for _, f := range m.Flags {
		switch f {
		case "seen":
			status = "RO"
		case "answered":
			more += "A"
		case "flagged":
			more += "F"
		case "deleted":
			more += "D"
		case "draft":
			more += "T"
		default:
			keywords = append(keywords, f)
		}
	}
	var text bytes.Buffer
	text.WriteString("From MAILER-DAEMON " + m.Received.UTC().Format(time.ANSIC) + "\n" +
		"Status: " + status + "\nX-Status: " + more + "\nX-Keywords: " + strings.Join(keywords, " ") + "\n")
	for line := range bytes.Lines(m.Content) {
		if quotedFrom(line) {
			text.WriteByte('>')
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		text.Write(line)
		text.WriteByte('\n')
	}
	text.WriteByte('\n')
	_, err := w.out.Write(text.Bytes())
	return err
}

// quotedFrom reports whether a line is From with any number of > before it.
func quotedFrom(line []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(line, ">"), []byte("From "))
}

// readMbox reads a file, or all files below a directory.
func readMbox(path string, visit func(string, *Message) error) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return readMboxFile(path, "INBOX", visit)
	}
	found := false
	err = filepath.WalkDir(path, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(entry.Name(), ".") {
			return err
		}
		name, err := filepath.Rel(path, at)
		if err != nil {
			return err
		}
		parts := strings.Split(filepath.ToSlash(strings.TrimSuffix(name, mboxSuffix)), "/")
		for i := range parts {
			parts[i] = unescape(parts[i])
		}
		found = true
		return readMboxFile(at, strings.Join(parts, "/"), visit)
	})
	if err == nil && !found {
		err = wrong(path, "the directory has no mbox file")
	}
	return err
}

func readMboxFile(path, folder string, visit func(string, *Message) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if err := visit(folder, nil); err != nil {
		return err
	}
	return readMboxMessages(path, file, func(m *Message) error {
		m.Folder = folder
		return visit(folder, m)
	})
}

// clock is a time of day. Some programs do not quote lines that begin with From, which have none.
var clock = regexp.MustCompile(` \d?\d:\d\d`)

// readMboxMessages reads the messages of a file. A message begins with a line "From " with a time, at the beginning or after an empty line.
func readMboxMessages(path string, in io.Reader, visit func(*Message) error) error {
	r := bufio.NewReaderSize(in, 64<<10)
	var m *Message
	var content []byte
	empty := true // the line before is empty
	number := 0
	finish := func() error {
		if m == nil {
			return nil
		}
		m.Content = content
		if bytes.HasSuffix(content, []byte("\r\n\r\n")) { // the empty line before the next message
			m.Content = content[:len(content)-2]
		}
		takeFlags(m)
		return visit(m)
	}
	for {
		line, err := r.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // a long line cannot begin a message
			if m == nil {
				return wrong(path, "line %d is not the beginning of a message in mbox format", number+1)
			}
			content = append(content, line...)
			line, err = r.ReadSlice('\n')
			if len(content) > maxMessageBytes {
				return wrong(path, "the message that ends after line %d is larger than %d bytes", number, maxMessageBytes)
			}
			empty = false
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) > 0 {
			number++
			text := bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			switch {
			case empty && bytes.HasPrefix(text, []byte("From ")) && (m == nil || clock.Match(text)):
				if err := finish(); err != nil {
					return err
				}
				m, content = &Message{Received: fromTime(string(text))}, nil
			case m == nil && len(text) > 0:
				return wrong(path, "line %d is not the beginning of a message in mbox format", number)
			case m != nil:
				if len(text) > 0 && text[0] == '>' && quotedFrom(text) {
					text = text[1:]
				}
				if content = append(append(content, text...), '\r', '\n'); len(content) > maxMessageBytes {
					return wrong(path, "the message that ends after line %d is larger than %d bytes", number, maxMessageBytes)
				}
			}
			empty = len(text) == 0
		}
		if err != nil {
			return finish()
		}
	}
}

// fromTime returns the time of a From line: a sender and a date, in UTC unless a zone is in it.
func fromTime(line string) time.Time {
	fields := strings.Fields(line)
	for n := min(6, len(fields)-1); n >= 5; n-- {
		for _, layout := range []string{"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 2006 -0700", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 15:04:05 -0700 2006"} {
			if at, err := time.Parse(layout, strings.Join(fields[len(fields)-n:], " ")); err == nil {
				return at.UTC()
			}
		}
	}
	return time.Time{}
}

// takeFlags reads the flags of a message from its header. The three fields that Write adds are removed.
func takeFlags(m *Message) {
	for _, name := range []string{"Status: ", "X-Status: ", "X-Keywords: "} {
		rest, found := bytes.CutPrefix(m.Content, []byte(name))
		if !found {
			continue
		}
		value, rest, _ := bytes.Cut(rest, []byte("\r\n"))
		m.Content = rest
		flagsOf(m, name, string(value))
	}
	header, _, _ := bytes.Cut(m.Content, []byte("\r\n\r\n"))
	for line := range bytes.SplitSeq(header, []byte("\r\n")) { // of another program
		for _, name := range []string{"Status: ", "X-Status: ", "X-Keywords: "} {
			if value, found := bytes.CutPrefix(line, []byte(name)); found {
				flagsOf(m, name, string(value))
			}
		}
	}
}

func flagsOf(m *Message, field, value string) {
	add := func(name string) {
		if !slices.Contains(m.Flags, name) {
			m.Flags = append(m.Flags, name)
		}
	}
	if field == "X-Keywords: " {
		for keyword := range strings.FieldsSeq(value) {
			add(keyword)
		}
		return
	}
	for _, c := range value {
		switch c {
		case 'R':
			add("seen")
		case 'A':
			add("answered")
		case 'F':
			add("flagged")
		case 'D':
			add("deleted")
		case 'T':
			add("draft")
		}
	}
}
