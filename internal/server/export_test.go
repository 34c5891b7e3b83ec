package server

import (
	"context"

	"fanfare.dev/fanfare/internal/mail/bounce"
)

// Take processes a bounce, complaint or receipt; see feedback.Processor.Take.
func (s *Server) Take(ctx context.Context, arrival bounce.Arrival) error {
	return s.feedback.Take(ctx, arrival)
}
