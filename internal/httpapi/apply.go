package httpapi

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

func (a *API) applyRoutes() {
	op := huma.Operation{OperationID: "apply", Method: http.MethodPost, Path: "/v1/apply", Tags: []string{"configuration"},
		Summary:     "Apply a document with the topics, templates and channels of a service",
		Description: "The server checks everything and renders each template first; after an error, nothing changes. The response lists the differences; the same document applied again has none.",
		Parameters:  []*huma.Param{flag("dry_run", "only validate the document and return the differences"), service()},
		RequestBody: body[any](a, "The document, with all files inlined", "application/yaml", "application/json")}
	replies[wire.Diff](a, &op, http.StatusOK, "The changes, or the changes of a dry run", "application/json")
	a.handle(op, mayConfigure, a.apply)
}

func (a *API) apply(x *responseWriter, r *http.Request, c caller) error {
	dryRun, err := httpio.Boolean(r, "dry_run")
	if err != nil {
		return err
	}
	text, err := httpio.ReadUpTo(x, r, document.MaxUploadBytes)
	if err != nil {
		return err
	}
	document, err := document.ParseDocument(text, "")
	if err != nil {
		return err
	}
	if c.service != "" && document.Service != c.service {
		e := &fanfare.Error{Code: fanfare.Forbidden, Pointer: "/service", Message: "the document is for service " + strconv.Quote(document.Service) + ", but the key is for " + c.service,
			Hint: "use a key for that service, or one for all services"}
		if c.principal.Service == "" {
			e.Code, e.Message = fanfare.Invalid, "the document is for service "+strconv.Quote(document.Service)+", but the request is for "+c.service
			e.Hint = "omit the header X-Fanfare-Service and ?service=, or name the service of the document"
		}
		return e
	}
	change := a.deps.Documents.Apply
	if dryRun {
		change = a.deps.Documents.Plan
	}
	diff, err := change(r.Context(), document)
	if err != nil {
		return err
	}
	if diff.Changes == nil {
		diff.Changes = []catalog.Change{}
	}
	return httpio.WriteJSON(x, http.StatusOK, "application/json", diff)
}
