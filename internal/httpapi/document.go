package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
)

// nobody stands in for what is described and not asked.
type nobody struct {
	recipientpages.Unsubscriber
	recipientpages.Signups
	recipientpages.Choices
}

// WriteOpenAPI writes the OpenAPI 3.1 document that a server of this version
// answers at /openapi.json. It needs no server: routes are described before
// anything stands behind them.
func WriteOpenAPI(w io.Writer, version string) error {
	everything := Dependencies{Version: version, Metrics: http.NotFoundHandler(), Unsubscriber: nobody{}, Signups: nobody{}, Choices: nobody{}}
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
