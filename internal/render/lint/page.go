package lint

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// maxPreheader is how much may be hidden before all else: the line that lists of
// mails show beside the subject.
const maxPreheader = 200

// maxDepth is how deep elements are followed; those below look as the last.
const maxDepth = 512

// An element that is open.
type element struct {
	name        string
	offset      int
	style       textStyle
	setsColor   bool // it says something of colours
	reported    bool
	hiddenRunes int // runes that it hides
}

// A link that is open.
type link struct {
	offset  int
	address string
	words   strings.Builder
}

// A page is HTML that is being looked at.
type page struct {
	*linter
	isMarkdown    bool   // of Markdown: offsets are not those of what was written
	masked        string // of that, what was written with its Liquid out of sight
	searches      int    // places in it that were looked for
	offset        int
	open          []element
	link          *link
	images, words int
	hasLanguage   bool // somebody said in which language it is
	elements      int
}

var voidElements = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true,
	"f-divider": true, "f-image": true, "f-spacer": true}

// droppedElements are elements that Gmail and others take away, most with what is in them.
var droppedElements = map[string]bool{"script": true, "iframe": true, "object": true, "embed": true, "form": true, "input": true, "select": true, "textarea": true, "svg": true, "canvas": true, "applet": true, "base": true}

// checkPage looks at HTML, which is what was written or was made of it, and counts what
// is to be seen. Of some it is told elsewhere in which language they are.
func (l *linter) checkPage(source string, language bool) (images, words int) {
	p := &page{linter: l, isMarkdown: l.part == "markdown", hasLanguage: language}
	if p.isMarkdown {
		p.masked = maskLiquid(p.written)
	}
	z := html.NewTokenizer(strings.NewReader(maskLiquid(source)))
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			break
		}
		size := len(z.Raw())
		switch t := z.Token(); kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			p.start(t)
		case html.EndTagToken:
			p.end(t.Data)
		case html.TextToken:
			p.checkText(t.Data)
		}
		p.offset += size
	}
	p.endLink()
	if !p.hasLanguage && p.elements > 0 {
		p.addAt(LangMissing, 0, "", `write <html lang="en">, or give the template a layout and lang`, "nobody says in which language it is: screen readers guess")
	}
	return p.images, p.words
}

// addAt tells of what begins at an offset; where the HTML was made, the place is that
// of text in what was written.
func (p *page) addAt(rule string, offset int, text, hint, message string) {
	if p.isMarkdown {
		offset = 0
		if p.searches++; p.searches > MaxFindings {
			offset = len(p.written) // it is one of those that are only counted
		} else if at := strings.Index(p.masked, text); text != "" && at >= 0 {
			offset = at
		}
	}
	p.add(rule, offset, hint, message)
}

func (p *page) start(t html.Token) {
	p.elements++
	attributes := map[string]string{}
	for _, a := range t.Attr {
		attributes[a.Key] = a.Val
	}
	_, says := attributes["lang"]
	if says && (p.elements == 1 || t.Data == "html" || t.Data == "body") {
		p.hasLanguage = true
	}
	if droppedElements[t.Data] {
		p.addAt(ElementDropped, p.offset, "<"+t.Data, "link to a page that has it", "mail readers take <"+t.Data+"> away")
	}
	switch t.Data {
	case "img", "f-image":
		p.checkImage(attributes)
	case "a", "f-button":
		p.endLink()
		if href, ok := attributes["href"]; ok {
			p.link = &link{offset: p.offset, address: href}
			p.checkAddress("the link", href)
		} else if attributes["name"] == "" && attributes["id"] == "" && !hasLiquid(t.String()) {
			p.addAt(LinkEmpty, p.offset, "", "give it an href, or leave the link away", "the link has no address")
		}
	}
	if voidElements[t.Data] || len(p.open) == maxDepth {
		return
	}
	around := defaultStyle
	if n := len(p.open); n > 0 {
		around = p.open[n-1].style
	}
	next, own := around.inside(t.Data, t.Attr)
	p.open = append(p.open, element{name: t.Data, offset: p.offset, style: next, setsColor: own})
}

// checkImage looks at an image.
func (p *page) checkImage(attributes map[string]string) {
	p.images++
	src := attributes["src"]
	alt, described := attributes["alt"]
	if p.link != nil {
		p.link.words.WriteString(alt)
	}
	if !described && attributes["src"] != "" || p.isMarkdown && alt == "" {
		p.addAt(ImageAlt, p.offset, src, `say in alt what it shows; alt="" where it is only an ornament`, "the image "+shortAddress(src)+" has no alternative text")
	}
	lower := strings.ToLower(strings.TrimSpace(src))
	switch {
	case lower == "":
		p.addAt(ImageAddress, p.offset, "", "give it a src, from https:// on", "the image has no address")
	case strings.HasPrefix(lower, "cid:"): // a template that shows what is not there is refused
	case strings.HasPrefix(lower, "data:"):
		p.addAt(ImageAddress, p.offset, src, "put the image on a server, and write its address", "Gmail and Outlook show no image that is written into the HTML (data:)")
	default:
		p.checkAddress("the image", src)
	}
}

// checkAddress looks at that of a link or an image.
func (p *page) checkAddress(what, address string) {
	wrong := checkAddress(address)
	if wrong == nil {
		return
	}
	rule := wrong.rule
	if what == "the image" && rule == LinkBroken {
		rule = ImageAddress
	}
	p.addAt(rule, p.offset, address, wrong.hint, what+": "+wrong.message)
}

func (p *page) end(name string) {
	if name == "a" || name == "f-button" {
		p.endLink()
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		if p.open[i].name == name {
			p.open = p.open[:i]
			return
		}
	}
}

// endLink looks at the words of the link that ends.
func (p *page) endLink() {
	l := p.link
	p.link = nil
	if l == nil {
		return
	}
	words := strings.Join(strings.Fields(strings.ReplaceAll(l.words.String(), string(tag), " ")), " ")
	if words == "" {
		p.addAt(LinkText, l.offset, l.address, "write words, or say in alt where the image leads", "the link has no words: a screen reader reads out its address")
		return
	}
	if vagueLinkTexts[strings.ToLower(strings.Trim(words, ".!»>→ "))] {
		p.addAt(LinkText, l.offset, l.address, "say where it leads: who hears only the links hears nothing else", "the words of the link, "+words+", do not say where it leads")
	}
	named, to := hostInText(words), hostOf(l.address)
	if named != "" && to != "" && !sameSite(named, to) {
		p.addAt(LinkMisleads, l.offset, l.address, "let the words be the address, or be no address", "the words of the link are an address of "+named+", and it leads to "+to+", as in a mail that phishes")
	}
}

// checkText looks at words where they stand.
func (p *page) checkText(text string) {
	n := len(p.open)
	if n == 0 || strings.TrimSpace(literalTags(text)) == "" {
		if n == 0 {
			p.words += len(strings.Fields(literalTags(text)))
		}
		return
	}
	at := &p.open[n-1]
	switch at.name {
	case "style", "script", "title", "svg":
		return
	}
	if p.link != nil {
		p.link.words.WriteString(text)
	}
	if at.style.isInvisible() {
		p.checkHidden(text)
		return
	}
	p.words += len(strings.Fields(literalTags(text)))
	p.checkContrast(at.style)
}

// literalTags is the text with its values, and without tags.
func literalTags(text string) string { return strings.ReplaceAll(text, string(tag), "") }

// checkHidden counts the words of the outermost element that hides them.
func (p *page) checkHidden(text string) {
	for i := range p.open {
		if e := &p.open[i]; e.style.isInvisible() {
			e.hiddenRunes += utf8.RuneCountInString(strings.TrimSpace(literalTags(text)))
			if !e.reported && (p.words > 0 || e.hiddenRunes > maxPreheader) {
				e.reported = true
				p.addAt(TextHidden, e.offset, "", fmt.Sprintf("show it or leave it away; up to %d characters before all else are for the lists of mails", maxPreheader), "it hides words, as much spam does")
			}
			return
		}
	}
}

// checkContrast looks at the colours of words, and blames the element that set them last.
func (p *page) checkContrast(k textStyle) {
	least := 4.5
	if k.large() {
		least = 3
	}
	if !k.color.known || !k.background.known {
		return
	}
	ratio := contrast(k.color, k.background)
	if ratio >= least {
		return
	}
	for i := len(p.open) - 1; i >= 0; i-- {
		if e := &p.open[i]; e.setsColor {
			if !e.reported {
				e.reported = true
				p.addAt(Contrast, e.offset, "", fmt.Sprintf("take a darker or a lighter one: WCAG asks for %g to 1", least), fmt.Sprintf("its colours are hard to tell apart, %.1f to 1", ratio))
			}
			return
		}
	}
}
