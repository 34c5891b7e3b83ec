package liquid

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	osteele "github.com/osteele/liquid"
	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
)

// Limits, in bytes.
const (
	MaxSubjectBytes = 1 << 10          // source of a subject
	MaxBodyBytes    = 512 << 10        // source of a text, an HTML or a JSON part
	maxMadeBytes    = 4 * MaxBodyBytes // an HTML or text part that was generated, with its layout and styles
	maxRenderBytes  = 4 << 20          // one rendered part
)

// A Part is a compiled subject, text, HTML or JSON document. It can always be rendered whole.
// If its personal nodes do not depend on the others, it is also split: Shared is rendered once
// for all recipients and has a slot for each personal node, which is rendered for each
// recipient. Both ways give the same bytes.
type Part struct {
	Name      string
	source    string       // with LF line ends
	Made      *bodies.Part // nil if the part is as its author wrote it
	Mode      Mode
	Whole     *Program
	Paths     []Path  // all that the part reads
	Sharing   Sharing // of the part as a whole
	Localized LocalizationNeed

	Split  bool     // Shared and Slots are set
	Shared *Program // slot n is slotMark n slotMark
	Slots  []Slot

	Flat FlatText // Shared, if it is that simple; otherwise nil

	notify        *NotifyContent    // of a template in the syntax of GOV.UK Notify, or nil
	images        map[string]string // of HTML: Content-IDs of the images of the template, by name
	ShownImages   []string          // names of the images that the HTML refers to
	MissingImages []MissingImage    // images that the HTML refers to and that do not exist
}

// A Slot is a node of a split part that is not the same for all recipients. It has a Field or
// else a Program.
type Slot struct {
	Field   *Field
	Program *Program
	Paths   []Path // all that the node reads
	Sharing Sharing
}

// slotMark surrounds the number of a slot. No value and no template can contain it.
const slotMark = "\x00"

// CompilePart compiles a part as its author wrote it, or as it was generated from another
// source. It may output content.
func CompilePart(name, source string, made *bodies.Part, m Mode, images map[string]string, content *NotifyContent) (*Part, *fanfare.Error) {
	limit := MaxBodyBytes
	switch {
	case made != nil || content != nil:
		limit = maxMadeBytes
	case name == "subject":
		limit = MaxSubjectBytes
	}
	if err := CheckSource(source, limit); err != nil {
		return nil, err
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	p := &Part{Name: name, source: source, Made: made, Mode: m, images: images, notify: content}
	// The library reads the source as written first, so that its errors about the syntax quote
	// the author's own words.
	if _, err := p.parse(source, 1); err != nil {
		p.SetPosition(err, "")
		return nil, err
	}
	s := splitter{mode: m, part: p}
	s.scope, s.captured = newScope(parser.Scan(source, parser.SourceLoc{LineNo: 1}, nil))
	s.split(source)
	if len(s.errors) > 0 {
		s.errors[0].Details = s.errors[1:]
		return nil, s.errors[0]
	}
	var whole strings.Builder
	for _, u := range s.nodes {
		whole.WriteString(u.source)
		p.Paths = append(p.Paths, u.paths...)
		p.Localized = max(p.Localized, u.need)
	}
	p.Sharing = widestSharing(p.Paths)
	var err *fanfare.Error
	if p.Whole, err = p.parse(whole.String(), 1); err == nil {
		err = p.splitSlots(s.nodes)
	}
	if err != nil {
		p.SetPosition(err, "")
		return nil, err
	}
	return p, nil
}

// splitSlots sets Shared and Slots, unless a node that is not the same for all recipients
// assigns a variable or reads an assigned one.
func (p *Part) splitSlots(nodes []node) *fanfare.Error {
	var shared strings.Builder
	var slots []Slot
	flat, lines := true, FlatText{}
	for _, n := range nodes {
		sharing, assigned := n.sharing(), len(n.assigns) > 0
		for _, path := range n.paths {
			assigned = assigned || path.Assigned
		}
		if sharing == SharedByAll {
			shared.WriteString(n.source)
			flat = flat && lines.addNode(&n)
			continue
		}
		if assigned {
			return nil
		}
		slot := Slot{Field: newField(n), Paths: n.paths, Sharing: sharing}
		if slot.Field == nil {
			var err *fanfare.Error
			if slot.Program, err = p.parse(n.source, n.line); err != nil {
				return err
			}
		}
		shared.WriteString("{{ " + strconv.Itoa(len(slots)) + " | " + slotFilter +
			strings.Repeat("\n", strings.Count(n.source, "\n")) + " }}")
		slots, lines = append(slots, slot), append(lines, flatPiece{slot: true})
	}
	if flat {
		p.Flat = lines
	}
	t, err := p.parse(shared.String(), 1)
	if err != nil {
		return err
	}
	p.Split, p.Shared, p.Slots = true, t, slots
	return nil
}

// convertError converts an error of the library.
func convertError(err osteele.SourceError) *fanfare.Error {
	wrong := invalid(max(0, err.LineNumber()), "", "%s", err.Error())
	cause := err.Cause()
	if cause == nil {
		// There is only the message: remove the words around it.
		message := strings.TrimPrefix(err.Error(), "Liquid error")
		if _, rest, ok := strings.Cut(message, ": "); ok {
			message = rest
		}
		if i := strings.LastIndex(message, " in "+err.Path()); i > 0 && err.Path() != "" {
			message = message[:i]
		}
		if tag, ok := strings.CutSuffix(strings.TrimSpace(message), " not inside"); ok {
			message = tag + " without an opening tag"
		}
		wrong.Message = message
		return wrong
	}
	wrong.Message = cause.Error()
	if f, ok := errors.AsType[expressions.FilterError](cause); ok {
		if wrong.Message = f.Err.Error(); f.FilterName != countFilter {
			wrong.Message = fmt.Sprintf("filter %s: %v", strings.TrimPrefix(f.FilterName, localizedPrefix), f.Err)
		}
		cause = f.Err
	}
	if m, ok := errors.AsType[undefinedError](cause); ok {
		wrong.Message = m.Error()
	}
	return wrong
}

// A boundedBuffer refuses to grow beyond maxRenderBytes.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRenderBytes {
		return 0, errors.New("the rendered template is larger than " + strconv.Itoa(maxRenderBytes>>20) + " MB")
	}
	return b.Buffer.Write(p)
}

func (b *boundedBuffer) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

var _ io.StringWriter = (*boundedBuffer)(nil)

// SetPosition sets the position of an error whose line in the part is known. The column is the
// one of text. If the part was generated, the line and the pointer become those of the source
// that the author wrote.
func (p *Part) SetPosition(err *fanfare.Error, text string) {
	source := p.source
	if p.Made != nil {
		file, line := p.Made.Origin(err.Line)
		for n := err.Line; file == nil && n > 0; n-- {
			file, line = p.Made.Origin(n)
		}
		err.Line = line
		if file == nil {
			return
		}
		err.Pointer, source = file.Pointer(), file.Text
	}
	if err.Line > 0 {
		SetColumn(source, err, text)
	}
}

// RenderShared returns the text that all recipients share, in the pieces that stand around
// the slots: one more than there are slots.
func (p *Part) RenderShared(vars map[string]any, usage *Usage) ([][]byte, *fanfare.Error) {
	if p.Flat != nil {
		if texts := p.Flat.Texts(vars, p.Mode, usage.Missing); texts != nil {
			return texts, nil
		}
	}
	rest, err := p.Shared.Render(vars, usage)
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, 0, len(p.Slots)+1)
	for i := range p.Slots {
		before, after, _ := bytes.Cut(rest, []byte(slotMark+strconv.Itoa(i)+slotMark))
		texts, rest = append(texts, slices.Clip(before)), after
	}
	return append(texts, rest), nil
}

// A Program is Liquid that is ready to run.
type Program struct{ template *osteele.Template }

// parse compiles source with the library. The location has a path, because the library replaces
// the line of an error without one by the line of the enclosing block.
func (p *Part) parse(source string, line int) (compiled *Program, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			compiled, wrong = nil, invalid(0, "", "the template cannot be parsed as Liquid: %v", r)
		}
	}()
	t, err := newEngine(p.Mode, p.notify).ParseTemplateLocation([]byte(source), p.Name, line)
	if err != nil {
		return nil, convertError(err)
	}
	return &Program{t}, nil
}

// Render runs the program and adds what it consumes to e. It returns a *fanfare.Error without a
// pointer.
func (p *Program) Render(vars map[string]any, e *Usage) (out []byte, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			out, wrong = nil, invalid(0, "", "a value of the wrong type is used: %.200s", fmt.Sprint(r))
		}
	}()
	var w boundedBuffer
	vars[usageVariable] = e
	if err := p.template.FRender(&w, vars); err != nil {
		return nil, convertError(err)
	}
	return w.Bytes(), nil
}

// CheckSource refuses a source that is too long, is not UTF-8 or contains a NUL.
func CheckSource(source string, limit int) *fanfare.Error {
	switch {
	case len(source) > limit:
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("the source has %d bytes; at most %d are allowed", len(source), limit)}
	case !utf8.ValidString(source):
		return invalid(0, "save the file as UTF-8", "not valid UTF-8")
	case strings.IndexByte(source, 0) >= 0:
		return invalid(0, "", "contains a NUL character")
	}
	return nil
}

// invalid returns an error with the code Invalid.
func invalid(line int, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Line: line, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// SetColumn sets the column of an error whose line is known: the position of text as a whole
// word or, if text is empty, of the first tag or output in the line. Columns count characters
// from 1. The column stays 0 if text is not found.
func SetColumn(source string, e *fanfare.Error, text string) {
	line := lineOf(source, e.Line)
	at := -1
	switch {
	case text == "{{" || text == "{%": // an unclosed one is the last in its line
		at = strings.LastIndex(line, text)
	case text != "":
		at = indexName(line, text)
	default:
		for _, open := range []string{"{%", "{{"} {
			if i := strings.Index(line, open); i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
	}
	if at >= 0 {
		e.Column = utf8.RuneCountInString(line[:at]) + 1
	}
}

// lineOf returns line n of source, counted from 1.
func lineOf(source string, n int) string {
	for ; n > 1; n-- {
		_, rest, more := strings.Cut(source, "\n")
		if !more {
			return ""
		}
		source = rest
	}
	line, _, _ := strings.Cut(source, "\n")
	return line
}

// indexName is strings.Index for a name that is not a part of a longer name.
func indexName(line, name string) int {
	for from := 0; ; {
		i := strings.Index(line[from:], name)
		if i < 0 {
			return -1
		}
		at, end := from+i, from+i+len(name)
		if (at == 0 || !isNameByte(line[at-1])) && (end == len(line) || !isNameByte(line[end]) || !isNameByte(name[len(name)-1])) {
			return at
		}
		from = at + 1
	}
}

// isNameByte reports whether a byte may be inside a name.
func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}
