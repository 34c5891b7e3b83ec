package mail

import (
	"slices"
	"strconv"
	"strings"

	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// A leaf is a part without parts. A message in a message is a leaf.
type leaf struct {
	*mimetree.Part
	number int // from 1, in the order of the message
}

// kind returns the type, such as text/plain.
func (p *leaf) kind() string { return kindOf(p.Part) }

func kindOf(p *mimetree.Part) string {
	if p.Subtype == "" {
		return strings.ToLower(p.Type)
	}
	return strings.ToLower(p.Type + "/" + p.Subtype)
}

func (p *leaf) disposition() string { return strings.ToLower(p.Disposition) }

// A body is the structure of a message as RFC 8621, section 4.1.4, describes it.
type body struct {
	root    *mimetree.Part
	leaves  []*leaf
	numbers map[*mimetree.Part]int

	text, html, attachments []*leaf
}

// bodyOf finds the parts that are the text, the HTML and the attachments of a message.
func bodyOf(root *mimetree.Part) *body {
	b := &body{root: root, numbers: map[*mimetree.Part]int{}}
	b.number(root)
	s := sorting{b: b, text: new([]*leaf), html: new([]*leaf)}
	s.parts([]*mimetree.Part{root}, "mixed", false)
	if s.text != nil {
		b.text = *s.text
	}
	if s.html != nil {
		b.html = *s.html
	}
	return b
}

func (b *body) number(p *mimetree.Part) {
	if p.IsMultipart() {
		for _, child := range p.Children {
			b.number(child)
		}
		if len(p.Children) > 0 {
			return
		}
	}
	b.leaves = append(b.leaves, &leaf{p, len(b.leaves) + 1})
	b.numbers[p] = len(b.leaves)
}

// leaf returns a part by its number, or nil.
func (b *body) leaf(number int) *leaf {
	if number < 1 || number > len(b.leaves) {
		return nil
	}
	return b.leaves[number-1]
}

// partID returns the partId of a leaf, or nil for a part with parts.
func (b *body) partID(p *mimetree.Part) *string {
	n, ok := b.numbers[p]
	if !ok {
		return nil
	}
	id := strconv.Itoa(n)
	return &id
}

// sorting is the algorithm of section 4.1.4. text and html are nil inside of an alternative of the other kind.
type sorting struct {
	b          *body
	text, html *[]*leaf
}

func isMedia(kind string) bool {
	return strings.HasPrefix(kind, "image/") || strings.HasPrefix(kind, "audio/") || strings.HasPrefix(kind, "video/")
}

func length(list *[]*leaf) int {
	if list == nil {
		return -1
	}
	return len(*list)
}

func (s *sorting) parts(parts []*mimetree.Part, multipart string, inAlternative bool) {
	textLength, htmlLength := length(s.text), length(s.html)
	text, html := s.text, s.html
	for i, p := range parts {
		number, isLeaf := s.b.numbers[p]
		if !isLeaf {
			inner := sorting{s.b, text, html}
			sub := strings.ToLower(p.Subtype)
			inner.parts(p.Children, sub, inAlternative || sub == "alternative")
			continue
		}
		part, kind := s.b.leaves[number-1], kindOf(p)
		inline := part.disposition() != "attachment" && (kind == "text/plain" || kind == "text/html" || isMedia(kind)) &&
			(i == 0 || multipart != "related" && (isMedia(kind) || p.Filename() == ""))
		if !inline {
			s.b.attachments = append(s.b.attachments, part)
			continue
		}
		if multipart == "alternative" {
			switch {
			case kind == "text/plain" && text != nil:
				*text = append(*text, part)
			case kind == "text/html" && html != nil:
				*html = append(*html, part)
			default:
				s.b.attachments = append(s.b.attachments, part)
			}
			continue
		}
		if inAlternative {
			if kind == "text/plain" {
				html = nil
			}
			if kind == "text/html" {
				text = nil
			}
		}
		if text != nil {
			*text = append(*text, part)
		}
		if html != nil {
			*html = append(*html, part)
		}
		if (text == nil || html == nil) && isMedia(kind) {
			s.b.attachments = append(s.b.attachments, part)
		}
	}
	if multipart == "alternative" && text != nil && html != nil {
		if textLength == len(*text) && htmlLength != len(*html) { // only HTML
			*text = append(*text, slices.Clone((*html)[htmlLength:])...)
		}
		if htmlLength == len(*html) && textLength != len(*text) { // only plain text
			*html = append(*html, slices.Clone((*text)[textLength:])...)
		}
	}
}
