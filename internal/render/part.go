package render

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/osteele/liquid"
	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
)

// A part is a compiled subject, text or HTML. It can be rendered whole, and
// where the personal pieces stand apart it can be split: shared is rendered once
// for all recipients and has slots for the pieces, which are rendered for each.
// Both ways give the same bytes.
type part struct {
	name   string
	owner  *Template    // that says it, of which others may take it
	source string       // with LF line ends
	made   *bodies.Part // of what it was made, nil: it is as its author wrote it
	mode   mode
	whole  *liquid.Template
	paths  []path // all that it reads
	reach  reach  // of it as a whole
	speech speech

	split  bool             // shared and pieces are set
	shared *liquid.Template // with the nth piece as slotMark n slotMark
	pieces []piece

	outline outline // of shared, where it is that simple

	images map[string]string // of HTML: Content-IDs of what it may show, by name
	shows  []string          // names of those that it does
	lost   []lostImage       // those that it would
}

// A piece is one unit of a split part that is not the same for all: a field, or
// else a template.
type piece struct {
	field    *field
	template *liquid.Template
	paths    []path // what it reads
	reach    reach
}

// slotMark stands around the number of a piece. No value and no template can
// contain it.
const slotMark = "\x00"

// compilePart compiles a part as its author wrote it, or as it was made.
func compilePart(name, source string, made *bodies.Part, m mode, images map[string]string) (*part, *fanfare.Error) {
	limit := MaxBodyBytes
	switch {
	case made != nil:
		limit = maxMadeBytes
	case name == "subject":
		limit = MaxSubjectBytes
	}
	if err := checkSource(source, limit); err != nil {
		return nil, err
	}
	source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	p := &part{name: name, source: source, made: made, mode: m, images: images}
	// Liquid sees the source as written first, so that what it has to say about
	// the syntax is in the author's words.
	if _, err := p.parse(source, 1); err != nil {
		p.point(err, "")
		return nil, err
	}
	s := splitter{mode: m, part: p}
	s.scope, s.captured = newScope(parser.Scan(source, parser.SourceLoc{LineNo: 1}, nil))
	s.split(source)
	if len(s.wrong) > 0 {
		s.wrong[0].Details = s.wrong[1:]
		return nil, s.wrong[0]
	}
	var whole strings.Builder
	for _, u := range s.units {
		whole.WriteString(u.source)
		p.paths = append(p.paths, u.paths...)
		p.speech = max(p.speech, u.speech)
	}
	p.reach = reachOf(p.paths)
	var err *fanfare.Error
	if p.whole, err = p.parse(whole.String(), 1); err == nil {
		err = p.divide(s.units)
	}
	if err != nil {
		p.point(err, "")
		return nil, err
	}
	return p, nil
}

// divide makes shared and pieces, unless a unit that is not the same for all
// depends on a variable that another unit assigns, or assigns one.
func (p *part) divide(units []unit) *fanfare.Error {
	var shared strings.Builder
	var pieces []piece
	outlined, lines := true, outline{}
	for _, u := range units {
		reach, assigned := u.reach(), len(u.writes) > 0
		for _, path := range u.paths {
			assigned = assigned || path.assigned
		}
		if reach == ofAll {
			shared.WriteString(u.source)
			outlined = outlined && lines.add(&u)
			continue
		}
		if assigned {
			return nil
		}
		piece := piece{field: newField(u), paths: u.paths, reach: reach}
		if piece.field == nil {
			var err *fanfare.Error
			if piece.template, err = p.parse(u.source, u.line); err != nil {
				return err
			}
		}
		shared.WriteString("{{ " + strconv.Itoa(len(pieces)) + " | " + slotFilter +
			strings.Repeat("\n", strings.Count(u.source, "\n")) + " }}")
		pieces, lines = append(pieces, piece), append(lines, stroke{piece: true})
	}
	if outlined {
		p.outline = lines
	}
	t, err := p.parse(shared.String(), 1)
	if err != nil {
		return err
	}
	p.split, p.shared, p.pieces = true, t, pieces
	return nil
}

// parse hands source to Liquid. The location has a path because Liquid replaces
// the line of an error that has none by that of the block around it.
func (p *part) parse(source string, line int) (t *liquid.Template, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			t, wrong = nil, invalid(0, "", "Liquid cannot read the template: %v", r)
		}
	}()
	t, err := newEngine(p.mode).ParseTemplateLocation([]byte(source), p.name, line)
	if err != nil {
		return nil, explain(err)
	}
	return t, nil
}

// render runs t, and adds what that takes to e. It returns a *fanfare.Error without a pointer.
func render(t *liquid.Template, vars map[string]any, e *effort) (out []byte, wrong *fanfare.Error) {
	defer func() {
		if r := recover(); r != nil {
			out, wrong = nil, invalid(0, "", "a value does not fit its use: %.200s", fmt.Sprint(r))
		}
	}()
	var w bounded
	vars[effortVariable] = e
	if err := t.FRender(&w, vars); err != nil {
		return nil, explain(err)
	}
	return w.Bytes(), nil
}

// explain translates an error of Liquid.
func explain(err liquid.SourceError) *fanfare.Error {
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
		wrong.Message = fmt.Sprintf("filter %s: %v", strings.TrimPrefix(f.FilterName, voicedPrefix), f.Err)
		cause = f.Err
	}
	if m, ok := errors.AsType[missingError](cause); ok {
		wrong.Message = m.Error()
	}
	return wrong
}

// bounded is a buffer that refuses to grow beyond maxRenderBytes.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxRenderBytes {
		return 0, errors.New("the rendered template is over " + strconv.Itoa(maxRenderBytes>>20) + " MB")
	}
	return b.Buffer.Write(p)
}

func (b *bounded) WriteString(s string) (int, error) { return b.Write([]byte(s)) }

var _ io.StringWriter = (*bounded)(nil)
