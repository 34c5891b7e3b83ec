package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
)

func (a *API) healthRoutes() {
	op := func(id, path, summary, mediaType string) huma.Operation {
		o := huma.Operation{OperationID: id, Method: http.MethodGet, Path: path, Tags: []string{"operations"}, Summary: summary}
		replies[any](a, &o, http.StatusOK, "OK", mediaType)
		return o
	}
	a.handle(op("is-alive", "/healthz", "Check whether the process is alive", "text/plain"), anybody, func(x *responseWriter, _ *http.Request, _ caller) error {
		writeText(x, "ok\n")
		return nil
	})
	a.handle(op("is-ready", "/readyz", "Check whether the server accepts work; 503 with the reason while it starts or stops or cannot reach its database", "text/plain"), anybody, func(x *responseWriter, _ *http.Request, _ caller) error {
		if err := a.deps.Ready(); err != nil {
			if fanfare.CodeOf(err) == fanfare.Internal {
				err = &fanfare.Error{Code: fanfare.Unavailable, Message: err.Error()}
			}
			return err
		}
		writeText(x, "ready\n")
		return nil
	})
	if a.deps.Metrics == nil {
		return
	}
	a.handle(op("get-metrics", "/metrics", "Get the metrics in the Prometheus format; requests from other machines need an operator key", "text/plain"), anybody, func(x *responseWriter, r *http.Request, _ caller) error {
		if !a.deps.MetricsOpen && !httpio.IsLocal(r) {
			if _, err := a.admitted(x, operator); err != nil {
				return err
			}
		}
		a.deps.Metrics.ServeHTTP(x, r)
		return nil
	})
}

func writeText(x *responseWriter, text string) {
	x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	httpio.WriteAll(x, http.StatusOK, []byte(text))
}
