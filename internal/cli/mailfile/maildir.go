package mailfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// keywordsFile has the names of the keywords of a folder, which are a to z in the names of files (as Dovecot writes it).
const keywordsFile = "dovecot-keywords"

const (
	maxKeywords     = 26
	maildirCodes    = "DFRST" // in the order in which they must be written
	keywordsMaxSize = 1 << 20
)

var maildirFlags = [len(maildirCodes)]string{"draft", "flagged", "answered", "seen", "deleted"}

// A maildirWriter writes a file for each message.
type maildirWriter struct {
	dir      string
	folder   string // directory of the current folder
	name     string
	keywords []string
	number   int
}

// Folder begins the directory of a folder: the directory itself for the inbox, and .name.name for others.
func (w *maildirWriter) Folder(name string) error {
	if w.folder != "" && w.name == name {
		return nil
	}
	if err := w.Close(); err != nil {
		return err
	}
	w.folder, w.name, w.keywords = w.dir, name, nil
	if name != "INBOX" {
		w.folder = filepath.Join(w.dir, maildirName(name))
	}
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(w.folder, part), 0o700); err != nil {
			return err
		}
	}
	if name == "INBOX" {
		return nil
	}
	return os.WriteFile(filepath.Join(w.folder, "maildirfolder"), nil, 0o600)
}

func maildirName(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	return "." + strings.Join(parts, ".")
}

// Close writes the keywords of the last folder.
func (w *maildirWriter) Close() error {
	if w.folder == "" || len(w.keywords) == 0 {
		return nil
	}
	var b strings.Builder
	for i, keyword := range w.keywords {
		fmt.Fprintf(&b, "%d %s\n", i, keyword)
	}
	return os.WriteFile(filepath.Join(w.folder, keywordsFile), []byte(b.String()), 0o600)
}

// Write writes a message. If all its lines end with CR LF, they are written with LF.
func (w *maildirWriter) Write(m *Message) error {
	if err := w.Folder(m.Folder); err != nil {
		return err
	}
	var codes []byte
	for i, flag := range maildirFlags {
		if slices.Contains(m.Flags, flag) {
			codes = append(codes, maildirCodes[i])
		}
	}
	for _, keyword := range m.Flags {
		if slices.Contains(maildirFlags[:], keyword) {
			continue
		}
		at := slices.Index(w.keywords, keyword)
		if at < 0 {
			if at = len(w.keywords); at == maxKeywords {
				return wrong(w.folder, "the folder has more than %d labels, which is the maximum of Maildir", maxKeywords)
			}
			w.keywords = append(w.keywords, keyword)
		}
		codes = append(codes, byte('a'+at))
	}
	slices.Sort(codes)
	content := m.Content
	if bytes.Count(content, []byte("\n")) == bytes.Count(content, []byte("\r\n")) {
		content = bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))
	}
	w.number++
	name := fmt.Sprintf("%d.M%09dQ.fanfare,S=%d:2,%s", m.Received.Unix(), w.number, len(content), codes)
	path := filepath.Join(w.folder, "cur", name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Chtimes(path, m.Received, m.Received)
}

// readMaildir reads a Maildir with its subfolders.
func readMaildir(path string, visit func(string, *Message) error) error {
	if _, err := os.Stat(filepath.Join(path, "cur")); err != nil {
		return wrong(path, "the directory has no subdirectory cur, so it is no Maildir")
	}
	if err := readMaildirFolder(path, "INBOX", visit); err != nil {
		return err
	}
	list, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range list {
		name, sub := strings.CutPrefix(entry.Name(), ".")
		if !sub || !entry.IsDir() || name == "" || name == "." {
			continue
		}
		if _, err := os.Stat(filepath.Join(path, entry.Name(), "cur")); err != nil {
			continue
		}
		parts := strings.Split(name, ".")
		for i := range parts {
			parts[i] = unescape(parts[i])
		}
		if err := readMaildirFolder(filepath.Join(path, entry.Name()), strings.Join(parts, "/"), visit); err != nil {
			return err
		}
	}
	return nil
}

// readMaildirFolder reads the messages of a folder in the order of the times at which they came.
func readMaildirFolder(dir, folder string, visit func(string, *Message) error) error {
	if err := visit(folder, nil); err != nil {
		return err
	}
	keywords, err := readKeywords(filepath.Join(dir, keywordsFile))
	if err != nil {
		return err
	}
	type entry struct {
		path string
		at   time.Time
		size int64
	}
	var all []entry
	for _, part := range []string{"cur", "new"} {
		list, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			info, err := e.Info()
			if err != nil {
				return err
			}
			if info.Mode().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
				all = append(all, entry{filepath.Join(dir, part, e.Name()), info.ModTime(), info.Size()})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	for i := range all {
		if all[i].size > maxMessageBytes {
			return wrong(all[i].path, "the message is larger than %d bytes", maxMessageBytes)
		}
		content, err := os.ReadFile(all[i].path)
		if err != nil {
			return err
		}
		if !bytes.Contains(content, []byte("\r\n")) {
			content = bytes.ReplaceAll(content, []byte("\n"), []byte("\r\n"))
		}
		if err := visit(folder, &Message{Folder: folder, Flags: codeFlags(all[i].path, keywords), Received: all[i].at.UTC(), Content: content}); err != nil {
			return err
		}
	}
	return nil
}

// codeFlags returns the flags in the name of a file, after :2,.
func codeFlags(path string, keywords map[int]string) (flags []string) {
	_, codes, _ := strings.Cut(filepath.Base(path), ":2,")
	for _, c := range codes {
		if i := strings.IndexRune(maildirCodes, c); i >= 0 {
			flags = append(flags, maildirFlags[i])
		} else if keyword, known := keywords[int(c-'a')]; known {
			flags = append(flags, keyword)
		}
	}
	return flags
}

// readKeywords reads the names of the keywords of a folder by their numbers.
func readKeywords(path string) (map[int]string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > keywordsMaxSize {
		return nil, wrong(path, "the file is larger than %d bytes", keywordsMaxSize)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	keywords := map[int]string{}
	for line := range strings.Lines(string(text)) {
		number, keyword, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < maxKeywords && keyword != "" {
			keywords[i] = keyword
		}
	}
	return keywords, nil
}
