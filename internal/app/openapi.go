package app

import (
	"io"

	"fanfare.dev/fanfare/internal/api"
)

// WriteOpenAPI writes the description of the API without starting anything.
func WriteOpenAPI(w io.Writer, version string) error { return api.WriteOpenAPI(w, version) }
