// Package mailfile reads and writes mail in files: mbox (RFC 4155, with the quoting of mboxrd) and Maildir with subfolders (Maildir++). The commands
// `fanfare mailbox export` and `import` call it.
//
// State. The open files of a running export or import.
//
// Failure. A writer refuses to overwrite files. A reader refuses what is not in its format, and messages above a limit.
package mailfile

import (
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare"
)

// A Message is a message with what a folder knows of it.
type Message struct {
	Folder   string // names of the folder and of those that contain it, separated by /
	Flags    []string
	Received time.Time // zero: unknown
	Content  []byte
}

// The formats.
const (
	Mbox    = "mbox"
	Maildir = "maildir"
)

// maxMessageBytes is the maximum size of a message that is read.
const maxMessageBytes = 256 << 20

// A Writer writes the messages of a mailbox, folder by folder.
type Writer interface {
	// Folder begins a folder, which may stay empty.
	Folder(name string) error
	Write(m *Message) error
	Close() error
}

// NewWriter returns a writer of a format to a directory, which must be empty or missing.
func NewWriter(format, dir string) (Writer, error) {
	if err := emptyDirectory(dir); err != nil {
		return nil, err
	}
	if format == Maildir {
		return &maildirWriter{dir: dir}, nil
	}
	return &mboxWriter{dir: dir}, nil
}

// Read visits the folders and the messages of files in a format. With a folder, it visits a message; without, the name of a folder.
func Read(format, path string, visit func(folder string, m *Message) error) error {
	if format == Maildir {
		return readMaildir(path, visit)
	}
	return readMbox(path, visit)
}

// escape writes the name of a folder so that it is the name of a file: letters, digits and most characters stay, and the others are written as %XX.
func escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < ' ' || strings.IndexByte(`./\:%*?"<>|`, c) >= 0 || c == 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescape reads a name that escape wrote. A % without two hexadecimal digits stays.
func unescape(name string) string {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		var c byte
		if name[i] == '%' && i+2 < len(name) {
			if n, err := fmt.Sscanf(name[i+1:i+3], "%02X", &c); n == 1 && err == nil {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(name[i])
	}
	return b.String()
}

func wrong(path, format string, args ...any) error {
	return &fanfare.Error{Code: fanfare.Invalid, Message: path + ": " + fmt.Sprintf(format, args...), Hint: "check --format and --from; the formats are mbox and maildir"}
}
