package agent

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// An output keeps the last lines of a process and passes each line on. It never keeps the key of the instance.
type output struct {
	prefix string
	secret string
	next   io.Writer

	mu      sync.Mutex
	lines   []string
	partial []byte
	cut     bool // the rest of a line that is too long is dropped
}

// Write takes what a process printed. It never fails, so that a process does not die because of its log.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for rest := b; len(rest) > 0; {
		line, after, complete := bytes.Cut(rest, []byte("\n"))
		if !o.cut {
			o.partial = append(o.partial, line[:min(len(line), maxLine-len(o.partial))]...)
			o.cut = len(o.partial) == maxLine
		}
		if complete {
			o.end()
		}
		rest = after
	}
	return len(b), nil
}

// maxLine is the number of bytes of a line that are passed on.
const maxLine = 64 << 10

func (o *output) end() {
	line := strings.TrimRight(string(o.partial), "\r")
	o.partial, o.cut = o.partial[:0], false
	if o.secret != "" {
		line = strings.ReplaceAll(line, o.secret, "[key]")
	}
	if o.next != nil {
		_, _ = io.WriteString(o.next, o.prefix+line+"\n") // nobody can be told
	}
	if len(line) > agentmessage.MaxLineBytes {
		line = line[:agentmessage.MaxLineBytes] + "…"
	}
	if !utf8.ValidString(line) {
		line = strings.ToValidUTF8(line, "�")
	}
	if len(o.lines) == agentmessage.MaxOutputLines {
		o.lines = slices.Delete(o.lines, 0, 1)
	}
	o.lines = append(o.lines, line)
}

// last returns the last lines, with the one that has no end.
func (o *output) last() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.partial) > 0 {
		o.end()
	}
	return slices.Clone(o.lines)
}

// lockedWriter serializes the lines of all processes.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
