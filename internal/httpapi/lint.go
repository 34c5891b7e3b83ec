package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) lintRoutes() {
	op := huma.Operation{OperationID: "lint-template", Method: http.MethodPost, Path: "/v1/templates/{template}/lint", Tags: []string{"templates"},
		Summary:     "What readers are going to mind of a template, stored or as a draft",
		Description: "Answers what mail readers, screen readers and filters against spam are going to mind, each with the part, line and column and what to do. Links are judged by their shape: nothing is asked of the network, kept or sent.",
		Parameters:  []*huma.Param{param("template", "its name; of a draft any"), service()},
		RequestBody: body[wire.LintRequest](a, "What to look at; {} takes what is stored", "application/json")}
	replies[wire.Lint](a, &op, http.StatusOK, "What was found; nothing is good", "application/json")
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
