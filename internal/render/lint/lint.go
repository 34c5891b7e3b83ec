package lint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"fanfare.dev/fanfare/internal/render/bodies"
)

// Limits.
const (
	MaxFindings = 100       // findings of a template that are returned; the others are counted
	ClipBytes   = 100 << 10 // of HTML: Gmail and others cut off the rest
	LargeBytes  = 5_000_000 // of encoded files: half of the 10 MB that many servers accept
)

// The rules. docs/how-to/template-lint.md explains each.
const (
	RenderFails    = "render-fails"    // the template fails for a kind of recipient; reported by the caller
	ImageAlt       = "image-alt"       // an image without alternative text
	ImageAddress   = "image-address"   // an image that readers cannot show
	ImagesOnly     = "images-only"     // images and hardly any text
	ImageUnused    = "image-unused"    // an image that the HTML does not show
	FilesLarge     = "files-large"     // files that are larger than some servers accept
	LinkEmpty      = "link-empty"      // a link without an address
	LinkBroken     = "link-broken"     // an address that does not work in a mail
	LinkPrivate    = "link-private"    // an address that works in a private network only
	LinkInsecure   = "link-insecure"   // http instead of https
	LinkText       = "link-text"       // a link text that does not say where the link leads
	LinkMisleads   = "link-misleads"   // a link text that is the address of another site
	HTMLSize       = "html-size"       // more HTML than readers show
	TextMissing    = "text-missing"    // HTML without text
	TextHidden     = "text-hidden"     // hidden text
	LangMissing    = "lang-missing"    // HTML without a language
	Contrast       = "contrast"        // colors with too little contrast
	ElementDropped = "element-dropped" // an element that readers remove
	SubjectCaps    = "subject-caps"    // a subject in capitals
	SubjectMarks   = "subject-marks"   // a subject with repeated punctuation
	SubjectReply   = "subject-reply"   // a subject that claims to be a reply
)

// A Source is a compiled template with its rendered sample.
type Source struct {
	Name       string
	PathPrefix string // of a variant: path in the document
	Subject    string
	Text       string
	HTML       string
	Markdown   string // instead of HTML
	Layout     string // "": the HTML is complete
	Lang       string

	CustomLayout string            // a layout of the author's own
	Partials     map[string]string // by name

	Rendered Rendered

	UnusedImages []string // images that the HTML does not show
	FilesBytes   int      // encoded size of all files
}

// Rendered is the template rendered with sample data.
type Rendered struct{ Text, HTML string }

// A Finding is one problem of a template.
type Finding struct {
	Rule    string
	Pointer string // part of the template: /templates/NAME/PART
	Line    int    // of the part, from 1
	Column  int    // of the line, from 1
	Message string // what is wrong, without a full stop
	Hint    string // what to do
}

// Check returns the findings of a template, and the number of those beyond MaxFindings.
func Check(src Source) (found []Finding, more int) {
	l := &linter{src: src}
	l.checkSubject()
	within := src.Layout != "" || src.CustomLayout != "" // the page around it has the language
	switch {
	case src.Markdown != "":
		// The generated HTML is checked without the page around it.
		made, wrong := bodies.Make(bodies.Source{Name: src.Name, Subject: src.Subject, Markdown: src.Markdown, Lang: src.Lang, Partials: src.Partials})
		if len(wrong) == 0 {
			l.part, l.written = "markdown", src.Markdown
			l.checkWhole(l.checkPage(made.HTML.Source, within))
		}
	case src.HTML != "":
		l.part, l.written = "html", src.HTML
		l.checkWhole(l.checkPage(src.HTML, within))
		for name, text := range src.Partials {
			l.part, l.written = "partials/"+name, text
			l.checkPage(text, true)
		}
	}
	if src.CustomLayout != "" {
		l.part, l.written = "page", src.CustomLayout
		l.checkPage(src.CustomLayout, false)
	}
	l.checkFiles()
	slices.SortStableFunc(l.pending, func(a, b pendingFinding) int {
		return cmp.Or(strings.Compare(b.Pointer, a.Pointer), a.offset-b.offset) // the subject first, then partials, page and body
	})
	for _, s := range l.pending[:min(len(l.pending), MaxFindings)] {
		s.Line, s.Column = lineOf(s.written, s.offset)
		found = append(found, s.Finding)
	}
	return found, len(l.pending) - len(found)
}

// checkFiles checks the files of the template.
func (l *linter) checkFiles() {
	l.written = ""
	for _, name := range l.src.UnusedImages {
		l.part = "images/" + name
		l.add(ImageUnused, 0, "show it, as <img src=\"cid:"+name+"\">, or remove it", "the image is included in every message, but the HTML does not show it")
	}
	if l.src.FilesBytes > LargeBytes {
		l.part = "attachments"
		l.add(FilesLarge, 0, "link to large files", "the files add "+strconv.Itoa(l.src.FilesBytes/1e6)+" MB in every message, and many mail servers accept only 10 MB in total")
	}
}

// A linter checks one template.
type linter struct {
	src     Source
	part    string // the part that is being checked
	written string // its text
	pending []pendingFinding
}

// A pendingFinding is a finding whose line is not yet counted, which is done only for findings
// that are returned.
type pendingFinding struct {
	Finding
	written string // text of the part
	offset  int
}

// add adds a finding at an offset of the part.
func (l *linter) add(rule string, offset int, hint, message string) {
	f := Finding{Rule: rule, Pointer: bodies.Pointer(l.src.Name, l.src.PathPrefix+l.part), Message: message, Hint: hint}
	l.pending = append(l.pending, pendingFinding{f, l.written, offset})
}

// checkWhole checks the HTML as a whole.
func (l *linter) checkWhole(images, words int) {
	if size := len(l.src.Rendered.HTML); size > ClipBytes {
		l.add(HTMLSize, 0, "move details to a linked page, and styles to a layout", "with sample data, the HTML has "+strconv.Itoa(size>>10)+" KB: Gmail cuts off everything after "+strconv.Itoa(ClipBytes>>10)+" KB, including the unsubscribe link")
	}
	if images > 0 && words < minWords && len(l.src.Partials) == 0 {
		l.add(ImagesOnly, 0, "write the message as text: many email clients load images only on request", "the message consists only of images, as spam often does")
	}
	if strings.TrimSpace(l.src.Rendered.Text) == "" && strings.TrimSpace(l.src.Rendered.HTML) != "" {
		l.add(TextMissing, 0, "write a text: the HTML contains no words from which to generate it", "the plain-text version is empty")
	}
}

// minWords is the number of words below which a mail consists of images.
const minWords = 5

// minCapitals is the number of capitals from which a subject is more than an abbreviation.
const minCapitals = 8

// checkSubject checks the subject.
func (l *linter) checkSubject() {
	l.part, l.written = "subject", l.src.Subject
	text := literal(maskLiquid(l.src.Subject))
	capitals, small := 0, 0
	for _, r := range text {
		switch {
		case unicode.IsUpper(r):
			capitals++
		case unicode.IsLower(r):
			small++
		}
	}
	if capitals >= minCapitals && small == 0 {
		l.add(SubjectCaps, 0, "write it in sentence case", "the subject is in all capitals, as in spam")
	}
	for _, marks := range []string{"!!", "??", "!?", "$$", "€€", "££"} {
		if at := strings.Index(l.src.Subject, marks); at >= 0 && strings.Contains(text, marks) {
			l.add(SubjectMarks, at, "use one punctuation mark", "the subject contains "+marks+", as in spam")
			break
		}
	}
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, claim := range []string{"re:", "fw:", "fwd:", "aw:"} {
		if strings.HasPrefix(lower, claim) && !hasLiquid(maskLiquid(l.src.Subject)[:1]) {
			l.add(SubjectReply, 0, "begin with the subject of the message", "the subject begins like a reply, but the message is not a reply")
		}
	}
}
