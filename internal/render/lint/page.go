package lint

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// maxPreheader is the longest hidden text at the beginning, which lists of mails show beside
// the subject.
const maxPreheader = 200

// maxDepth is the greatest depth of elements; deeper ones have the style of the last.
const maxDepth = 512

// An element is an open element.
type element struct {
	name        string
	offset      int
	style       textStyle
	setsColor   bool // it sets a color
	reported    bool
	hiddenRunes int // number of hidden characters
}

// A link is an open link.
type link struct {
	offset  int
	address string
	words   strings.Builder
}

// A page is HTML that is being checked.
type page struct {
	*linter
	isMarkdown    bool   // the HTML was generated from Markdown, so its offsets are not those of the source
	masked        string // the Markdown with masked Liquid
	searches      int    // number of searches in it
	offset        int
	open          []element
	link          *link
	images, words int
	hasLanguage   bool // the language is known
	elements      int
}

var voidElements = map[string]bool{"area": true, "base": true, "br": true, "col": true, "embed": true, "hr": true, "img": true, "input": true, "link": true, "meta": true, "source": true, "track": true, "wbr": true,
	"f-divider": true, "f-image": true, "f-spacer": true}

// droppedElements are removed by Gmail and others, most of them with their contents.
var droppedElements = map[string]bool{"script": true, "iframe": true, "object": true, "embed": true, "form": true, "input": true, "select": true, "textarea": true, "svg": true, "canvas": true, "applet": true, "base": true}

// checkPage checks HTML and counts its images and visible words. language tells that the
// language is known.
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
		p.addAt(LangMissing, 0, "", `write <html lang="en">, or set layout and lang in the template`, "the language is missing, so screen readers have to guess it")
	}
	return p.images, p.words
}

// addAt adds a finding at an offset. In generated HTML the position is that of text in the
// Markdown.
func (p *page) addAt(rule string, offset int, text, hint, message string) {
	if p.isMarkdown {
		offset = 0
		if p.searches++; p.searches > MaxFindings {
			offset = len(p.written) // it is only counted
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
		p.addAt(ElementDropped, p.offset, "<"+t.Data, "put it on a page, and link to the page", "email clients remove <"+t.Data+">")
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
			p.addAt(LinkEmpty, p.offset, "", "add an href, or remove the link", "the link has no address")
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

// checkImage checks an image.
func (p *page) checkImage(attributes map[string]string) {
	p.images++
	src := attributes["src"]
	alt, described := attributes["alt"]
	if p.link != nil {
		p.link.words.WriteString(alt)
	}
	if !described && attributes["src"] != "" || p.isMarkdown && alt == "" {
		p.addAt(ImageAlt, p.offset, src, `describe the image in alt; use alt="" if it is purely decorative`, "the image "+shortAddress(src)+" has no alternative text")
	}
	lower := strings.ToLower(strings.TrimSpace(src))
	switch {
	case lower == "":
		p.addAt(ImageAddress, p.offset, "", "add a src that begins with https://", "the image has no address")
	case strings.HasPrefix(lower, "cid:"): // CheckFiles refuses a missing image
	case strings.HasPrefix(lower, "data:"):
		p.addAt(ImageAddress, p.offset, src, "put the image on a web server, or add it to images in the template", "Gmail and Outlook do not show images in data: URLs")
	default:
		p.checkAddress("the image", src)
	}
}

// checkAddress checks the address of a link or an image.
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

// endLink checks the text of the link that ends.
func (p *page) endLink() {
	l := p.link
	p.link = nil
	if l == nil {
		return
	}
	words := strings.Join(strings.Fields(strings.ReplaceAll(l.words.String(), string(tag), " ")), " ")
	if words == "" {
		p.addAt(LinkText, l.offset, l.address, "add a text, or describe the image in alt", "the link has no text, so screen readers read out its address")
		return
	}
	if vagueLinkTexts[strings.ToLower(strings.Trim(words, ".!»>→ "))] {
		p.addAt(LinkText, l.offset, l.address, "describe the target of the link: screen readers can list links without their context", "the link text "+words+" does not describe the target of the link")
	}
	named, to := hostInText(words), hostOf(l.address)
	if named != "" && to != "" && !sameSite(named, to) {
		p.addAt(LinkMisleads, l.offset, l.address, "use the address as the text, or a text that is not an address", "the link text is an address on "+named+", but the link leads to "+to+", as in phishing")
	}
}

// checkText checks a text.
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

// literalTags returns the text with its values and without tags.
func literalTags(text string) string { return strings.ReplaceAll(text, string(tag), "") }

// checkHidden counts the hidden characters of the outermost hidden element.
func (p *page) checkHidden(text string) {
	for i := range p.open {
		if e := &p.open[i]; e.style.isInvisible() {
			e.hiddenRunes += utf8.RuneCountInString(strings.TrimSpace(literalTags(text)))
			if !e.reported && (p.words > 0 || e.hiddenRunes > maxPreheader) {
				e.reported = true
				p.addAt(TextHidden, e.offset, "", fmt.Sprintf("show the text or remove it; only a preview text of up to %d characters at the beginning can be hidden", maxPreheader), "text is hidden, as in spam")
			}
			return
		}
	}
}

// checkContrast checks the colors of a text and reports the element that set them.
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
				p.addAt(Contrast, e.offset, "", fmt.Sprintf("use a darker or a lighter color: WCAG requires %g to 1", least), fmt.Sprintf("the contrast of the colors is too low: %.1f to 1", ratio))
			}
			return
		}
	}
}
