package sink

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
)

const (
	maxKeptFiles   = 100_000              // messages that a folder keeps; later ones are only counted
	webhookAddress = "captured@localhost" // recipient of a webhook that is stored as a mail, as in a capture folder
	unknownChannel = "sink/received"      // of messages that do not say their channel
	capturedField  = "X-Fanfare-Captured"
	webhookIDField = "Webhook-Id"
)

// A Folder keeps messages as files in the layout of a capture folder, SERVICE/CHANNEL/ID.eml, so that a server shows them (setting capture_folders). The
// service and the channel are those of the field X-Fanfare-Captured. The id is that of the delivery; a message without one gets an id of its own.
type Folder struct {
	root *os.Root
	kept atomic.Int64
	own  atomic.Uint32 // number of ids that the folder made
}

// OpenFolder creates a folder if it does not exist, and opens it.
func OpenFolder(path string) (*Folder, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Folder{root: root}, nil
}

// Close closes the folder. The files remain.
func (f *Folder) Close() error { return f.root.Close() }

// Keep stores a message for each recipient. A message that is there already is replaced.
func (f *Folder) Keep(from string, to []string, body []byte) error {
	for i, recipient := range to {
		if f.kept.Add(1) > maxKeptFiles {
			return nil
		}
		if err := f.keep(from, recipient, body, i == 0); err != nil {
			return err
		}
	}
	return nil
}

func (f *Folder) keep(from, to string, body []byte, first bool) error {
	var head bytes.Buffer
	id := fieldOf(body, "Message-ID")
	if line, rest := cutLine(body); bytes.HasPrefix(line, []byte("POST ")) { // a request as it was read
		id, body = fieldOf(rest, webhookIDField), rest
		fmt.Fprintf(&head, "Return-Path: <%s>\r\nDelivered-To: %s\r\nSubject: POST %s\r\nContent-Type: application/json\r\n", webhookAddress, webhookAddress, (&url.URL{Scheme: "http", Opaque: "//" + oneLine(to)}).String())
	} else {
		fmt.Fprintf(&head, "Return-Path: <%s>\r\nDelivered-To: %s\r\n", oneLine(from), oneLine(to))
	}
	local, _, _ := strings.Cut(strings.Trim(id, "<>"), "@")
	ref, ok := fanfare.ParseDeliveryRef(local)
	if !ok || !first {
		now := time.Now()
		ref = fanfare.DeliveryRef{Day: fanfare.DayOf(now), Manifest: fanfare.NewManifestID(fanfare.NewEventSeq(uint64(now.UnixMilli()), 0), 0), Position: f.own.Add(1)}
	}
	folder := channelOf(fieldOf(body, capturedField))
	if err := f.root.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	name := filepath.Join(folder, ref.String()+".eml")
	part := fmt.Sprintf("%s.%d.part", name, f.own.Add(1))
	if err := f.root.WriteFile(part, append(head.Bytes(), body...), 0o600); err != nil {
		return err
	}
	return f.root.Rename(part, name)
}

// channelOf returns the folder of a channel, service/channel.
func channelOf(text string) string {
	service, channel, ok := strings.Cut(text, "/")
	for _, name := range []string{service, channel} {
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return unknownChannel
		}
	}
	return filepath.Join(service, channel)
}

// fieldOf returns the first field of a header with a name, or "".
func fieldOf(message []byte, name string) string {
	wanted := []byte(name + ":")
	for rest := message; len(rest) > 0; {
		line, next := cutLine(rest)
		if len(line) == 0 {
			break
		}
		if value := field(line, wanted, next); value != nil {
			return string(value)
		}
		rest = next
	}
	return ""
}

// oneLine removes what would end a line of a header.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
}
