package server

import (
	"fmt"
	"sync"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// templates are the versions that were compiled since the start. A version
// never changes, and there are as many as people have applied, so none is ever
// dropped.
type templates struct {
	registry *registry.Registry
	compiled sync.Map // number of the version: *format.Template
}

// get returns a compiled version. It is safe for concurrent use.
func (t *templates) get(number uint32) (*render.Template, error) {
	if known, ok := t.compiled.Load(number); ok {
		return known.(*render.Template), nil
	}
	source, ok := t.registry.Template(number)
	if !ok {
		return nil, &fanfare.Error{Code: fanfare.Invalid, Message: fmt.Sprintf("there is no template version %d", number), Hint: "name a template in the topic or in the rule, and apply it"}
	}
	template, err := render.Compile(sourceOf(&source))
	if err == nil {
		t.compiled.Store(number, template)
	}
	return template, err
}

// contentName stands for the name of a template in errors about the content of
// a direct send.
const contentName = "content"

// of returns the template of an event's messages: a compiled version, or the
// content that the event brings.
func (t *templates) of(posted *fanfare.Posted, number uint32) (*render.Template, error) {
	if number != 0 || posted.Direct == nil || posted.Direct.Content == nil {
		return t.get(number)
	}
	c := posted.Direct.Content
	return render.Compile(render.Source{Name: contentName, Subject: c.Subject, Text: c.Text, HTML: c.HTML, Files: fanfare.Shown(posted.Direct.Files)})
}
