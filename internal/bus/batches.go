package bus

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"fanfare.dev/fanfare"
)

// Publish encodes batches and appends them to BATCHES.
func (b *Bus) Publish(ctx context.Context, batches []fanfare.Batch) error {
	if len(batches) == 0 {
		return nil
	}
	messages := make([]Batch, len(batches))
	for i := range batches {
		data, err := json.Marshal(&batches[i])
		if err != nil {
			return err
		}
		messages[i] = Batch{Channel: batches[i].Channel, Lane: batches[i].Lane, Data: data}
	}
	return b.PublishBatches(ctx, messages)
}

// IsStop reports whether work on a message failed because the server is stopping.
func IsStop(ctx context.Context, err error) bool {
	return errors.Is(err, ErrClosed) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

// FailureLevel returns the level at which a failure of work on a message is logged. The message
// is delivered again; a stop of the server is not an error.
func FailureLevel(ctx context.Context, err error) slog.Level {
	if IsStop(ctx, err) {
		return slog.LevelInfo
	}
	return slog.LevelError
}
