package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) lintRoutes() {
	op := huma.Operation{OperationID: "lint-template", Method: http.MethodPost, Path: "/v1/templates/{template}/lint", Tags: []string{"templates"},
		Summary:     "Check a stored template or a draft for problems that its readers could have",
		Description: "Lists problems with email clients, screen readers and spam filters, each with the part, line, column and remedy. Only the syntax of links is checked: the server makes no network requests, and stores and sends nothing.",
		Parameters:  []*huma.Param{param("template", "name of the template; any name if the request contains a template"), service()},
		RequestBody: body[wire.LintRequest](a, "The template to check; {} checks the stored template", "application/json")}
	replies[wire.Lint](a, &op, http.StatusOK, "The problems; an empty list if there are none", "application/json")
	a.handle(op, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		s, err := a.oneService(c)
		if err != nil {
			return err
		}
		var in wire.LintRequest
		if err := httpio.ReadTemplateJSON(x, r, &in); err != nil {
			return err
		}
		name := r.PathValue("template")
		found, err := a.deps.Previews.Lint(r.Context(), s, name, in)
		if err != nil {
			if in.Template != nil {
				err = inDraft(name, err)
			}
			return err
		}
		return httpio.WriteJSON(x, http.StatusOK, "application/json", found)
	})
}
