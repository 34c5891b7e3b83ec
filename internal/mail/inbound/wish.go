package inbound

import (
	"bufio"
	"bytes"
	"net/textproto"
	"strings"
)

// maxHeaderBytes is how much of a message is looked at for its header.
const maxHeaderBytes = 64 << 10

// wished reports whether a mail to the address of List-Unsubscribe is the wish to
// leave: it has a sender, and no program made it as an answer (RFC 3834). Mail
// programs send the wish by themselves and may say so with auto-generated, which is
// for what answers nothing.
func wished(from string, text []byte) bool {
	if from == "" {
		return false
	}
	text = text[:min(len(text), maxHeaderBytes)]
	if end := bytes.Index(text, []byte("\r\n\r\n")); end >= 0 {
		text = text[:end+4]
	} else {
		text = append(text[:len(text):len(text)], "\r\n\r\n"...)
	}
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil && len(header) == 0 {
		return true // it has nothing in it that speaks against
	}
	local, _, _ := strings.Cut(strings.ToLower(from), "@")
	kind, _, _ := strings.Cut(strings.ToLower(header.Get("Content-Type")), ";")
	submitted, _, _ := strings.Cut(strings.ToLower(header.Get("Auto-Submitted")), ";")
	submitted = strings.TrimSpace(submitted)
	switch {
	case submitted != "" && submitted != "no" && submitted != "auto-generated",
		strings.TrimSpace(kind) == "multipart/report",
		local == "mailer-daemon" || local == "postmaster",
		header.Get("X-Autoreply") != "", header.Get("X-Autorespond") != "", header.Get("X-Auto-Reply-From") != "",
		strings.EqualFold(strings.TrimSpace(header.Get("Precedence")), "auto_reply"):
		return false
	}
	return true
}
