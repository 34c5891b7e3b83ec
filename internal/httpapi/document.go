package httpapi

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"fanfare.dev/fanfare/internal/httpapi/recipientpages"
)

// nobody is a placeholder for components that are only described and never called.
type nobody struct {
	recipientpages.Unsubscriber
	recipientpages.Signups
	recipientpages.Choices
}

// WriteOpenAPI writes the OpenAPI 3.1 document that a server of this version
// serves at /openapi.json. It does not need a server: the routes are described
// without the components that they use.
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
