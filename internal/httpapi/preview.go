package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Previews renders and checks templates. It stores and sends nothing.
type Previews interface {
	Preview(ctx context.Context, service, template string, in wire.PreviewRequest) (wire.Preview, error)
	// Lint reports problems that readers may have with a template.
	Lint(ctx context.Context, service, template string, in wire.LintRequest) (wire.Lint, error)
}

func (a *API) previewRoutes() {
	op := huma.Operation{OperationID: "preview-template", Method: http.MethodPost, Path: "/v1/templates/{template}/preview", Tags: []string{"templates"},
		Summary:     "Render a stored template or a draft",
		Description: "Returns the subject, text, HTML and the complete message for an event and a subscriber, which you specify or the server generates. Errors give the part of the template and the line. Nothing is stored or sent.",
		Parameters:  []*huma.Param{param("template", "name of the template; any name if the request contains a template"), service()},
		RequestBody: body[wire.PreviewRequest](a, "The input; {} uses sample data", "application/json")}
	replies[wire.Preview](a, &op, http.StatusOK, "The rendered template", "application/json")
	a.handle(op, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		var in wire.PreviewRequest
		if err := httpio.ReadTemplateJSON(x, r, &in); err != nil {
			return err
		}
		name := r.PathValue("template")
		p, err := a.deps.Previews.Preview(r.Context(), s, name, in)
		if err != nil {
			if in.Template != nil {
				err = inDraft(name, err)
			}
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", p)
	})
}

// inDraft converts pointers into a document to pointers into the template of the request.
func inDraft(name string, err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	at := *e
	if part, ok := strings.CutPrefix(e.Pointer, "/templates/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name)); ok {
		at.Pointer = "/template" + part
	}
	at.Details = nil
	for _, d := range e.Details {
		if one, ok := errors.AsType[*fanfare.Error](inDraft(name, d)); ok {
			at.Details = append(at.Details, one)
		}
	}
	return &at
}
