package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// WriteOpenAPI writes the OpenAPI 3.1 document that a server of this version
// answers at /openapi.json. It needs no server: routes are described before
// anything stands behind them.
func WriteOpenAPI(w io.Writer, version string) error {
	everything := Parts{Version: version, Metrics: http.NotFoundHandler(), Unsubscribe: func(context.Context, string) error { return nil }}
	compact, err := json.Marshal(New(everything).spec.OpenAPI())
	if err != nil {
		return err
	}
	var document bytes.Buffer
	if err := json.Indent(&document, compact, "", "  "); err != nil {
		return err
	}
	document.WriteByte('\n')
	_, err = document.WriteTo(w)
	return err
}
