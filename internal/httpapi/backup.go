package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

const (
	backupType = "application/x-tar"
	// stallTime is how long a client may stop reading a backup. The write-ahead log
	// of a store file grows until the client continues.
	stallTime = time.Minute
)

func (a *API) backupRoutes() {
	tags := []string{"operations"}
	op := huma.Operation{OperationID: "take-backup", Method: http.MethodGet, Path: "/v1/backup", Tags: tags,
		Summary: "Take a backup of the running server as one stream",
		Description: "A tar archive with a manifest at its end. A stream that ends before its manifest is not a valid backup. " +
			"The backup contains addresses and the key that signs links; protect it like the data directory.",
		Parameters: []*huma.Param{{Name: "rate", In: "query", Description: "maximum number of bytes per second; default: no limit",
			Schema: &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: new(1.0)}}}}
	replies[any](a, &op, http.StatusOK, "The backup", backupType)
	a.handle(op, operator, a.takeBackup)

	read(a, huma.Operation{OperationID: "get-restored", Method: http.MethodGet, Path: "/v1/restored", Tags: tags,
		Summary:     "Show the backup from which the server was restored, and the work that may have been sent after it",
		Description: "404 if the server was not restored."}, operator, a.restored)
}

func (a *API) takeBackup(x *responseWriter, r *http.Request, _ caller) error {
	var bytesPerSecond int64
	if text := r.URL.Query().Get("rate"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "the query parameter rate must be a number of bytes per second, at least 1"}
		}
		bytesPerSecond = n
	}
	a.note(r.Context(), audit.Operation{Action: "take", Kind: "backup"}, nil) // first, so that the backup contains this entry
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-a.stopping: // stopping the server does not wait for a backup
			cancel()
		case <-ctx.Done():
		}
	}()
	x.Header().Set("Content-Type", backupType)
	x.Header().Set("Content-Disposition", `attachment; filename="fanfare-`+a.now().UTC().Format("20060102T150405Z")+`.tar"`)
	err := a.deps.Backups.Backup(ctx, &flowing{x: x, rc: http.NewResponseController(x)}, bytesPerSecond)
	if err != nil && x.status == 0 {
		x.Header().Del("Content-Disposition")
	}
	if err != nil && r.Context().Err() == nil {
		a.log.Log(ctx, a.failureLevel(), "a backup failed", "request_id", x.id, "err", err)
	}
	return err
}

// flowing extends the write deadline of a long response while the client keeps reading.
type flowing struct {
	x     *responseWriter
	rc    *http.ResponseController
	moved time.Time
}

func (f *flowing) Write(b []byte) (int, error) {
	if now := time.Now(); now.Sub(f.moved) > time.Second {
		if err := f.rc.SetWriteDeadline(now.Add(stallTime)); err != nil {
			return 0, err
		}
		f.moved = now
	}
	return f.x.Write(b)
}

func (a *API) restored(_ context.Context, _ caller, in *Page) (wire.Restored, error) {
	l := listingOf("restored", "")
	key, err := l.key(in.Cursor)
	if err != nil {
		return wire.Restored{}, err
	}
	offset := int64(0)
	if key != "" {
		if offset, err = strconv.ParseInt(key, 10, 64); err != nil {
			return wire.Restored{}, err
		}
	}
	from, list, next, err := a.deps.Backups.Restored(offset, in.Limit)
	if err != nil {
		return wire.Restored{}, err
	}
	if from == nil {
		return wire.Restored{}, &fanfare.Error{Code: fanfare.NotFound, Message: "this server was not restored from a backup"}
	}
	answer := wire.Restored{RestoredFrom: *from, Uncertain: orEmpty(list)}
	if next != 0 {
		answer.Next = l.cursor(strconv.FormatInt(next, 10))
	}
	return answer, nil
}
