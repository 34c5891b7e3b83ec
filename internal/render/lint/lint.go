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
	MaxFindings = 100       // of a template that are told one by one
	ClipBytes   = 100 << 10 // of HTML: readers such as Gmail cut off what is beyond
	LargeBytes  = 5_000_000 // of files as they are sent: with the rest of a mail, half of what many take
)

// The rules. docs/how-to/template-lint.md says of each what to do.
const (
	RenderFails    = "render-fails"    // it fails for a kind of recipient, told by who renders it
	ImageAlt       = "image-alt"       // an image that nobody describes
	ImageAddress   = "image-address"   // an image that cannot be shown
	ImagesOnly     = "images-only"     // images, and hardly a word
	ImageUnused    = "image-unused"    // an image that goes along and is not shown
	FilesLarge     = "files-large"     // files that take more than some accept
	LinkEmpty      = "link-empty"      // a link that leads nowhere
	LinkBroken     = "link-broken"     // an address that is none in a mail
	LinkPrivate    = "link-private"    // an address that only some networks know
	LinkInsecure   = "link-insecure"   // http, where https is expected
	LinkText       = "link-text"       // words that do not say where it leads
	LinkMisleads   = "link-misleads"   // words that are the address of somebody else
	HTMLSize       = "html-size"       // more than readers show
	TextMissing    = "text-missing"    // HTML, and no text
	TextHidden     = "text-hidden"     // words that nobody is to see
	LangMissing    = "lang-missing"    // nobody says in which language it is
	Contrast       = "contrast"        // colours that are hard to tell apart
	ElementDropped = "element-dropped" // an element that readers take away
	SubjectCaps    = "subject-caps"    // a subject in capitals
	SubjectMarks   = "subject-marks"   // a subject that shouts
	SubjectReply   = "subject-reply"   // a subject that claims to be an answer
)

// Source is a template that was compiled, and what it says with sample data.
type Source struct {
	Name       string
	PathPrefix string // what comes before the names of parts, of a variant
	Subject    string
	Text       string
	HTML       string
	Markdown   string // in place of HTML
	Layout     string // "": the HTML is whole
	Lang       string

	CustomLayout string            // a layout of the author's own
	Partials     map[string]string // by name

	Rendered Rendered

	UnusedImages []string // images that go along and that nothing shows
	FilesBytes   int      // what all files take in a mail
}

// Rendered is what a template says to somebody.
type Rendered struct{ Text, HTML string }

// A Finding is one thing that somebody is going to mind.
type Finding struct {
	Rule    string
	Pointer string // part of the template: /templates/NAME/PART
	Line    int    // of the part, from 1
	Column  int    // of that line, from 1
	Message string // what is wrong, without a full stop
	Hint    string // what to do
}

// Check looks at a template. Beyond MaxFindings they are only counted.
func Check(src Source) (found []Finding, more int) {
	l := &linter{src: src}
	l.checkSubject()
	within := src.Layout != "" || src.CustomLayout != "" // of which the page tells the language
	switch {
	case src.Markdown != "":
		// What is made of it is looked at, without the page around it.
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

// checkFiles looks at what goes along.
func (l *linter) checkFiles() {
	l.written = ""
	for _, name := range l.src.UnusedImages {
		l.part = "images/" + name
		l.add(ImageUnused, 0, "show it, as <img src=\"cid:"+name+"\">, or leave it away", "every mail has this image, and none shows it")
	}
	if l.src.FilesBytes > LargeBytes {
		l.part = "attachments"
		l.add(FilesLarge, 0, "link to what is large", "the files take "+strconv.Itoa(l.src.FilesBytes/1e6)+" MB in every mail, and many mail servers take 10 MB in all")
	}
}

// A linter looks at one template.
type linter struct {
	src     Source
	part    string // that is being looked at
	written string // its text
	pending []pendingFinding
}

// A spot is a finding whose line is not counted yet: only those that are told are worth
// that.
type pendingFinding struct {
	Finding
	written string // the part that it is in
	offset  int
}

// add adds a finding at an offset of the part.
func (l *linter) add(rule string, offset int, hint, message string) {
	f := Finding{Rule: rule, Pointer: bodies.Pointer(l.src.Name, l.src.PathPrefix+l.part), Message: message, Hint: hint}
	l.pending = append(l.pending, pendingFinding{f, l.written, offset})
}

// checkWhole looks at the HTML as a whole, of which it is known how much was seen.
func (l *linter) checkWhole(images, words int) {
	if size := len(l.src.Rendered.HTML); size > ClipBytes {
		l.add(HTMLSize, 0, "leave details to a page that you link to, and styles to a layout", "with sample data the HTML has "+strconv.Itoa(size>>10)+" KB: Gmail cuts off what is beyond "+strconv.Itoa(ClipBytes>>10)+", and the link to unsubscribe with it")
	}
	if images > 0 && words < minWords && len(l.src.Partials) == 0 {
		l.add(ImagesOnly, 0, "write as text what is to be read: many see no images until they ask for them", "it is made of images, as much spam is")
	}
	if strings.TrimSpace(l.src.Rendered.Text) == "" && strings.TrimSpace(l.src.Rendered.HTML) != "" {
		l.add(TextMissing, 0, "write a text: it is made from the HTML only where that has words", "there is no text for those who read mail without HTML")
	}
}

// minWords is how many are hardly any.
const minWords = 5

// minShoutedLetters is how many letters in capitals are no abbreviation any more.
const minShoutedLetters = 8

// checkSubject looks at the subject.
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
	if capitals >= minShoutedLetters && small == 0 {
		l.add(SubjectCaps, 0, "write it as a sentence", "the subject is in capitals, as that of much spam is")
	}
	for _, marks := range []string{"!!", "??", "!?", "$$", "€€", "££"} {
		if at := strings.Index(l.src.Subject, marks); at >= 0 && strings.Contains(text, marks) {
			l.add(SubjectMarks, at, "say it once", "the subject has "+marks+", as that of much spam has")
			break
		}
	}
	lower := strings.ToLower(strings.TrimSpace(text))
	for _, claim := range []string{"re:", "fw:", "fwd:", "aw:"} {
		if strings.HasPrefix(lower, claim) && !hasLiquid(maskLiquid(l.src.Subject)[:1]) {
			l.add(SubjectReply, 0, "begin with what it is about", "the subject begins as that of an answer, and answers nothing")
		}
	}
}
