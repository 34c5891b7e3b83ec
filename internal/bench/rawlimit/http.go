package rawlimit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
)

type httpSpec struct {
	Dir  string // folder for the bodies of /keep
	Sync bool
}

type httpAddress struct {
	URL string `json:"url"`
}

// HTTPPart serves requests until its input ends. It reads the body of a request to
// /discard, and writes the body of a request to /keep to a file, which it may sync.
func HTTPPart(ctx context.Context, spec httpSpec, in io.Reader, out *json.Encoder) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /discard", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w)
	})
	mux.HandleFunc("POST /keep", func(w http.ResponseWriter, r *http.Request) {
		if err := keep(spec, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer(w)
	})
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := out.Encode(httpAddress{"http://" + listener.Addr().String()}); err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func answer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"id":"evt-20261120-1001"}`)
}

func keep(spec httpSpec, body io.Reader) error {
	f, err := os.CreateTemp(spec.Dir, "kept-")
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	if err == nil && spec.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// BareHTTP starts a process that runs HTTPPart and returns its URL.
func BareHTTP(l *harness.Env) (*harness.Process, string, error) {
	c, err := l.StartPart("http", httpSpec{Dir: l.Dir, Sync: l.Durability == "fsync"})
	if err != nil {
		return nil, "", err
	}
	var at httpAddress
	if err := c.ReadJSON(&at); err != nil {
		return nil, "", err
	}
	return c, at.URL, nil
}
