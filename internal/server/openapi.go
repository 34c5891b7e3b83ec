package server

import (
	"io"

	"fanfare.dev/fanfare/internal/httpapi"
)

// WriteOpenAPI writes the description of the API without starting anything.
func WriteOpenAPI(w io.Writer, version string) error { return httpapi.WriteOpenAPI(w, version) }
