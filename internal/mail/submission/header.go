package submission

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"mime"
	netmail "net/mail"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/mail/address"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// A Refusal says why a message is not sent. It has a reply code and an enhanced status code of SMTP (RFC 3463).
type Refusal struct {
	Code     int
	Enhanced string
	Text     string
	Reason   Reason
}

func (r *Refusal) Error() string { return r.Text }

// A Reason is the kind of a Refusal.
type Reason uint8

// The reasons.
const (
	BadMessage    Reason = iota // its header is not permitted
	ForeignSender               // From or Sender is not an address of the account
	TooMuch                     // the account has sent too many messages
)

// Same reports whether two addresses are the same. The domain has no upper and lower case.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	a, errA := address.Parse(a)
	b, errB := address.Parse(b)
	return errA == nil && errB == nil && a == b
}

// Has reports whether an address is one of a list.
func Has(list []string, address string) bool {
	return slices.ContainsFunc(list, func(one string) bool { return Same(one, address) })
}

// Authors returns the distinct addresses in From and Sender of a message.
func Authors(text []byte) (list []string) {
	tree := mimetree.Parse(text)
	for _, a := range slices.Concat(tree.Envelope.From, tree.Envelope.Sender) {
		if one := a.Mailbox + "@" + a.Host; a.Group == mimetree.NoGroup && !Has(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// onceOnly are the fields of which a message has at most one (RFC 5322, section 3.6). Programs that show a message, and those that check
// signatures, could choose different ones otherwise.
var onceOnly = []string{"from", "sender", "reply-to", "to", "cc", "subject", "date", "message-id", "in-reply-to", "references", "mime-version", "content-type", "content-transfer-encoding"}

// Complete checks the header of a message whose sender has the addresses own, its account's first, removes Bcc, and adds Date and Message-ID if they are missing (RFC 6409, section 8). name
// is the host in a new Message-ID. The error is a *Refusal.
func Complete(text []byte, own []string, name string, now time.Time) ([]byte, error) {
	bad := func(format string, args ...any) ([]byte, error) {
		return nil, &Refusal{554, "5.6.0", fmt.Sprintf(format, args...), BadMessage}
	}
	tree := mimetree.Parse(text)
	if tree.Header.Len() == 0 {
		return bad("the message has no header")
	}
	header := text[:tree.Header.To]
	fields := map[string][]string{}
	for f := range mimetree.Fields(header) {
		field := strings.ToLower(f.Name)
		fields[field] = append(fields[field], string(f.Value))
	}
	if len(fields["from"]) != 1 || len(tree.Envelope.From) == 0 || len(fields["sender"]) > 1 {
		return bad("the message must have one From field and at most one Sender field")
	}
	for _, field := range onceOnly {
		if len(fields[field]) > 1 {
			return bad("the message must have at most one field %s", field)
		}
	}
	for _, field := range []struct {
		name string
		list []mimetree.Address
	}{{"From", tree.Envelope.From}, {"Sender", tree.Envelope.Sender}} {
		values := fields[strings.ToLower(field.name)]
		if len(values) == 0 {
			continue
		}
		foreign := &Refusal{550, "5.7.1", fmt.Sprintf("%s must be %s, the address of the account, or one of its aliases", field.name, own[0]), ForeignSender}
		list, err := addressParser.ParseList(strings.TrimSpace(values[0]))
		if err != nil {
			return bad("%s is not a list of addresses", field.name)
		}
		if slices.ContainsFunc(list, func(a *netmail.Address) bool { return !Has(own, a.Address) }) {
			return nil, foreign
		}
		for _, a := range field.list { // programs that show the message may read the field in this way
			if a.Group != mimetree.NoGroup || !Has(own, a.Mailbox+"@"+a.Host) {
				return nil, foreign
			}
		}
	}
	var added bytes.Buffer
	if len(fields["date"]) == 0 {
		added.WriteString("Date: " + now.Format(time.RFC1123Z) + "\r\n")
	}
	if len(fields["message-id"]) == 0 {
		added.WriteString("Message-ID: <" + strings.ToLower(rand.Text()) + "@" + name + ">\r\n")
	}
	if len(fields["bcc"]) == 0 && added.Len() == 0 {
		return text, nil
	}
	return append(append(added.Bytes(), without(header, "bcc")...), text[tree.Header.To:]...), nil
}

// addressParser ignores the character sets of names.
var addressParser = netmail.AddressParser{WordDecoder: &mime.WordDecoder{CharsetReader: func(_ string, r io.Reader) (io.Reader, error) { return r, nil }}}

// without returns a header without the fields of a name, which is in lower case.
func without(header []byte, name string) []byte {
	kept := make([]byte, 0, len(header))
	skipping := false
	for line := range bytes.SplitAfterSeq(header, []byte("\n")) {
		if folded := len(line) > 0 && (line[0] == ' ' || line[0] == '\t'); !folded {
			field, _, _ := bytes.Cut(line, []byte(":"))
			skipping = strings.EqualFold(string(bytes.TrimRight(field, " \t")), name)
		}
		if !skipping {
			kept = append(kept, line...)
		}
	}
	return kept
}

// only returns the fields of a header with some names, which are in lower case.
func only(header []byte, names ...string) string {
	var kept strings.Builder
	for f := range mimetree.Fields(header) {
		if slices.Contains(names, strings.ToLower(f.Name)) && kept.Len()+len(f.Value) < maxHeaderKept {
			kept.WriteString(f.Name + ": " + strings.TrimSpace(string(f.Value)) + "\r\n")
		}
	}
	return kept.String()
}

// maxHeaderKept bounds the header that a record keeps for reports, in bytes.
const maxHeaderKept = 4 << 10
