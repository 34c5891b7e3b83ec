package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/render/bodies"
)

// A Fault is where a template failed for somebody. It names what the template reads
// there, and never a value.
type Fault struct {
	Part      string   // of the document of the template: text, locales/cy/html
	Line      int      // 0: of the part as a whole
	Variables []string // that this line reads
}

// Fault tells where in the template an error of writing a message arose; false where
// the template is not to blame, as of an address.
func (t *Template) Fault(err error) (Fault, bool) {
	wrong, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return Fault{}, false
	}
	part, ok := strings.CutPrefix(wrong.Pointer, bodies.Pointer(t.Name, "")+"/")
	if !ok {
		return Fault{}, false
	}
	fault := Fault{Part: part, Line: wrong.Line}
	if wrong.Line == 0 {
		return fault, true
	}
	for _, p := range t.everyPart() {
		for _, read := range p.paths {
			at := t.at(p, invalid(read.line, "", ""), read.text)
			if at.Pointer == wrong.Pointer && at.Line == wrong.Line && !slices.Contains(fault.Variables, read.text) {
				fault.Variables = append(fault.Variables, read.text)
			}
		}
	}
	return fault, true
}

func (f Fault) String() string {
	text := f.Part
	if f.Line > 0 {
		text += fmt.Sprintf(", line %d", f.Line)
	}
	if len(f.Variables) > 0 {
		text += ", which reads " + strings.Join(f.Variables, ", ")
	}
	return text
}
