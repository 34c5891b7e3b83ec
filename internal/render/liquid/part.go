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

// Limits of a template, in bytes.
const (
	MaxSubjectBytes = 1 << 10          // of the subject's source
	MaxBodyBytes    = 512 << 10        // of the text's and of the HTML's source, each
	maxMadeBytes    = 4 * MaxBodyBytes // of a body that was made, with its layout and its styles
	maxRenderBytes  = 4 << 20          // of one rendered part
)

// A part is a compiled subject, text or HTML. It can be rendered whole, and
// where the personal pieces stand apart it can be split: shared is rendered once
// for all recipients and has slots for the pieces, which are rendered for each.
// Both ways give the same bytes.
type Part struct {
	Name      string
	source    string       // with LF line ends
	Made      *bodies.Part // of what it was made, nil: it is as its author wrote it
	Mode      Mode
	Whole     *Program
	Paths     []Path  // all that it reads
	Sharing   Sharing // of it as a whole
	Localized LocalizationNeed

	Split  bool     // shared and pieces are set
	Shared *Program // with the nth piece as slotMark n slotMark
	Slots  []Slot

	Flat FlatText // of shared, where it is that simple

	images        map[string]string // of HTML: Content-IDs of what it may show, by name
	ShownImages   []string          // names of those that it does
	MissingImages []MissingImage    // those that it would
}

// A piece is one unit of a split part that is not the same for all: a field, or
// else a template.
type Slot struct {
	Field   *Field
	Program *Program
	Paths   []Path // what it reads
	Sharing Sharing
}

// slotMark stands around the number of a piece. No value and no template can
// contain it.
const slotMark = "\x00"

// CompilePart compiles a part as its author wrote it, or as it was made.
func CompilePart(name, source string, made *bodies.Part, m Mode, images map[string]string) (*Part, *fanfare.Error) {
	limit := MaxBodyBytes
	switch {
	case made != nil:
		limit = maxMadeBytes
	case name == "subject":
		limit = MaxSubjectBytes
	}
	if err := CheckSource(source, limit); err != nil {
		return nil, err
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	p := &Part{Name: name, source: source, Made: made, Mode: m, images: images}
	// Liquid sees the source as written first, so that what it has to say about
	// the syntax is in the author's words.
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

// splitSlots makes shared and pieces, unless a unit that is not the same for all
// depends on a variable that another unit assigns, or assigns one.
func (p *Part) splitSlots(units []node) *fanfare.Error {
	var shared strings.Builder
	var pieces []Slot
	outlined, lines := true, FlatText{}
	for _, u := range units {
		reach, assigned := u.sharing(), len(u.assigns) > 0
		for _, path := range u.paths {
			assigned = assigned || path.Assigned
		}
		if reach == SharedByAll {
			shared.WriteString(u.source)
			outlined = outlined && lines.addNode(&u)
			continue
		}
		if assigned {
			return nil
		}
		piece := Slot{Field: newField(u), Paths: u.paths, Sharing: reach}
		if piece.Field == nil {
			var err *fanfare.Error
			if piece.Program, err = p.parse(u.source, u.line); err != nil {
				return err
			}
		}
		shared.WriteString("{{ " + strconv.Itoa(len(pieces)) + " | " + slotFilter +
			strings.Repeat("\n", strings.Count(u.source, "\n")) + " }}")
		pieces, lines = append(pieces, piece), append(lines, flatPiece{piece: true})
	}
	if outlined {
		p.Flat = lines
	}
	t, err := p.parse(shared.String(), 1)
	if err != nil {
		return err
	}
	p.Split, p.Shared, p.Slots = true, t, pieces
	return nil
}

// convertError translates an error of Liquid.
func convertError(err osteele.SourceError) *fanfare.Error {
	wrong := invalid(max(0, err.LineNumber()), "", "%s", err.Error())
	cause := err.Cause()
	if cause == nil {
		// The message is all there is: take it out of its frame.
		message := strings.TrimPrefix(err.Error(), "Liquid error")
		if _, rest, ok := strings.Cut(message, ": "); ok {
			message = rest
		}
		if i := strings.LastIndex(message, " in "+err.Path()); i > 0 && err.Path() != "" {
			message = message[:i]
		}
		if tag, ok := strings.CutSuffix(strings.TrimSpace(message), " not inside"); ok {
			message = tag + " without a begin"
		}
		wrong.Message = message
		return wrong
	}
	wrong.Message = cause.Error()
	if f, ok := errors.AsType[expressions.FilterError](cause); ok {
		wrong.Message = fmt.Sprintf("filter %s: %v", strings.TrimPrefix(f.FilterName, localizedPrefix), f.Err)
		cause = f.Err
	}
	if m, ok := errors.AsType[undefinedError](cause); ok {
		wrong.Message = m.Error()
	}
	return wrong
}

// boundedBuffer is a buffer that refuses to grow beyond maxRenderBytes.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRenderBytes {
		return 0, errors.New("the rendered template is over " + strconv.Itoa(maxRenderBytes>>20) + " MB")
	}
	return b.Buffer.Write(p)
}

func (b *boundedBuffer) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

var _ io.StringWriter = (*boundedBuffer)(nil)

// SetPosition says where in what its author wrote an error of the part is, whose line
// is known: the column is that of text. A part that was made of something else
// knows its pointer.
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

// A program is Liquid that is ready to run.
type Program struct{ template *osteele.Template }

// parse hands source to Liquid. The location has a path because Liquid replaces
// the line of an error that has none by that of the block around it.
func (p *Part) parse(source string, line int) (compiled *Program, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			compiled, wrong = nil, invalid(0, "", "Liquid cannot read the template: %v", r)
		}
	}()
	t, err := newEngine(p.Mode).ParseTemplateLocation([]byte(source), p.Name, line)
	if err != nil {
		return nil, convertError(err)
	}
	return &Program{t}, nil
}

// Render runs the program and adds what that takes to e. It returns a *fanfare.Error
// without a pointer.
func (p *Program) Render(vars map[string]any, e *Usage) (out []byte, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			out, wrong = nil, invalid(0, "", "a value does not fit its use: %.200s", fmt.Sprint(r))
		}
	}()
	var w boundedBuffer
	vars[usageVariable] = e
	if err := p.template.FRender(&w, vars); err != nil {
		return nil, convertError(err)
	}
	return w.Bytes(), nil
}

// CheckSource refuses what no template may be made of.
func CheckSource(source string, limit int) *fanfare.Error {
	switch {
	case len(source) > limit:
		return &fanfare.Error{Code: fanfare.TooLarge, Message: fmt.Sprintf("%d bytes, over the limit of %d", len(source), limit)}
	case !utf8.ValidString(source):
		return invalid(0, "save the file as UTF-8", "not valid UTF-8")
	case strings.IndexByte(source, 0) >= 0:
		return invalid(0, "", "contains a NUL character")
	}
	return nil
}

// invalid makes the error that the checks of this package return.
func invalid(line int, hint, format string, args ...any) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Invalid, Line: line, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// SetColumn sets the column of an error whose line is known: where text stands in
// it as a whole, or, without one, where the line's first tag or output begins.
// Columns count characters from 1; what cannot be found has none.
func SetColumn(source string, e *fanfare.Error, text string) {
	line := lineOf(source, e.Line)
	at := -1
	switch {
	case text == "{{" || text == "{%": // left open: nothing that is closed comes after it
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

// lineOf returns a line of a text, counted from 1.
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

// indexName is strings.Index for a name that is not a part of a longer one.
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

// isNameByte reports whether a byte may stand in the middle of a name.
func isNameByte(c byte) bool {
	return c == '_' || c == '.' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}
