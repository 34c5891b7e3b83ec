package dispatch

import (
	"context"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/compose"
)

// submitted returns the writer of a message that the owner of a mailbox has submitted.
func (l *loader) submitted(ctx context.Context, event *fanfare.AcceptedEvent) (compose.Writer, error) {
	return compose.SubmittedMessage(ctx, l.Attachments, event, func(message []byte) []byte { return l.signing.Sign(message, 0, nil) })
}
