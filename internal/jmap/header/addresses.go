package header

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// maxAddresses limits the addresses of a field. The rest is not read.
const maxAddresses = 10_000

// An Address is an EmailAddress object (section 4.1.2.3).
type Address struct {
	Name  *string `json:"name"`
	Email string  `json:"email"`
}

// A Group is an EmailAddressGroup object (section 4.1.2.4). Its name is nil for addresses that are in no group.
type Group struct {
	Name      *string   `json:"name"`
	Addresses []Address `json:"addresses"`
}

// Addresses returns a value in the form Addresses (section 4.1.2.3): groups are flattened.
func Addresses(value string) []Address {
	all := []Address{}
	for _, g := range Groups(value) {
		all = append(all, g.Addresses...)
	}
	return all
}

// Groups returns a value in the form GroupedAddresses (section 4.1.2.4).
func Groups(value string) []Group {
	p := addressParser{scan: scan{text: value}}
	for !p.end() && p.count < maxAddresses {
		p.step()
	}
	p.mailbox()
	p.group()
	if p.groups == nil {
		return []Group{}
	}
	return p.groups
}

// An addressParser reads a list of addresses.
type addressParser struct {
	scan
	groups []Group
	open   Group // the group that is being read
	named  bool  // open is a real group
	count  int

	// The address that is being read.
	words   []string // of the display name, decoded
	raw     strings.Builder
	address string
	angled  bool
	comment string
}

// step reads the next element.
func (p *addressParser) step() {
	if comment := p.space(); comment != "" {
		p.comment = comment
	}
	if p.end() {
		return
	}
	switch c := p.text[p.at]; c {
	case ',':
		p.at++
		p.mailbox()
	case ';':
		p.at++
		p.mailbox()
		p.group()
	case ':':
		p.at++
		if p.named || p.angled { // out of place
			p.raw.WriteByte(':')
			return
		}
		name := p.name()
		p.reset()
		p.group()
		p.open.Name, p.named = &name, true
		p.count++
	case '<':
		if address, ok := p.angle(); ok {
			p.address, p.angled = route(address), true
		} else {
			p.at = len(p.text)
		}
	case '"':
		begin := p.at
		p.words = append(p.words, strings.TrimSpace(clean(p.quoted())))
		p.raw.WriteString(p.text[begin:p.at])
	case '>', ')':
		p.at++
	default:
		p.atom()
	}
}

// atom reads a word, and encoded words that follow each other.
func (p *addressParser) atom() {
	begin := p.at
	for !p.end() && !strings.ContainsRune(" \t\r\n\x00,;:<>\"()", rune(p.text[p.at])) {
		p.at++
	}
	word := p.text[begin:p.at]
	p.raw.WriteString(word)
	if encoded := strings.HasPrefix(word, "=?"); encoded {
		for {
			rest := p.text[p.at:]
			next := strings.TrimLeft(rest, " \t\r\n")
			if next == rest || !strings.HasPrefix(next, "=?") {
				break
			}
			end := strings.IndexAny(next, " \t\r\n\x00,;:<>\"()")
			if end < 0 {
				end = len(next)
			}
			word += " " + next[:end]
			p.raw.WriteString(next[:end])
			p.at = len(p.text) - len(next) + end
		}
		word = Text(word)
	}
	p.words = append(p.words, clean(word))
}

func clean(text string) string {
	return norm.NFC.String(strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", ""))
}

func (p *addressParser) name() string { return strings.TrimSpace(strings.Join(p.words, " ")) }

func (p *addressParser) reset() {
	p.words, p.address, p.angled, p.comment = nil, "", false, ""
	p.raw.Reset()
}

// mailbox adds the address that was read.
func (p *addressParser) mailbox() {
	defer p.reset()
	var a Address
	name := ""
	if p.angled {
		a.Email, name = p.address, p.name()
	} else {
		a.Email = clean(p.raw.String())
	}
	if name == "" && p.comment != "" {
		name = Text(mimetree.DecodeHeader(p.comment))
	}
	if a.Email == "" && name == "" {
		return
	}
	if name != "" {
		a.Name = &name
	}
	p.open.Addresses = append(p.open.Addresses, a)
	p.count++
}

// group ends the open group.
func (p *addressParser) group() {
	if p.named || len(p.open.Addresses) > 0 {
		if p.open.Addresses == nil {
			p.open.Addresses = []Address{}
		}
		p.groups = append(p.groups, p.open)
	}
	p.open, p.named = Group{}, false
}

// route removes an obsolete source route (RFC 5322, section 4.4).
func route(address string) string {
	if strings.HasPrefix(address, "@") {
		if _, after, ok := strings.Cut(address, ":"); ok {
			return after
		}
	}
	return address
}
