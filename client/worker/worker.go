package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/internal/stream"
	"fanfare.dev/fanfare/internal/session/frame"
	"fanfare.dev/fanfare/internal/session/websocket"
)

// Options specify the worker of which the process is an instance. Empty fields come from the environment.
type Options struct {
	URL      string       // of the server; FANFARE_URL, else http://127.0.0.1:8085
	Key      string       // with the scope work; FANFARE_KEY
	Service  string       // only for keys without a service; FANFARE_SERVICE
	Worker   string       // its registered name; FANFARE_WORKER
	Instance string       // name of the process, unique within the worker; FANFARE_INSTANCE, else host and process id
	Capacity int          // tasks at the same time; 0: the concurrency of the registration
	Logger   *slog.Logger // of lost connections; nil: slog.Default
}

// A Task is an attempt to run a request. It is valid until the function returns: then the memory of its body is used
// for other tasks.
type Task struct {
	Session uint64 // number of the session: its id is ses- and this number
	Request uint64 // number of the request in the stream of its client
	Client  uint32 // number of the client in the session
	Attempt int    // from 1
	Action  string
	Body    []byte
}

// A Func runs a task and returns the response. Its context ends when the task is cancelled, when its timeout is over, and
// when the connection is lost; it does not end on SIGTERM, because a running task may finish. The result is copied after the
// function has returned.
type Func func(ctx context.Context, t *Task) ([]byte, error)

// A Fault is an error with a code of the worker. Other errors have the code fault.
type Fault struct {
	Code    string
	Message string
	Detail  string // such as a stack trace
}

func (f *Fault) Error() string { return f.Code + ": " + f.Message }

type retryError struct{ err error }

func (e *retryError) Error() string { return e.err.Error() }
func (e *retryError) Unwrap() error { return e.err }

// Retry returns an error that requests another attempt. If the session allows no further attempt, err is the response.
func Retry(err error) error { return &retryError{err} }

const (
	firstWait = time.Second // before a new connection; doubled for each attempt
	maxWait   = time.Minute
)

// Run runs tasks with fn until ctx ends, the process receives SIGTERM or SIGINT, or the broker stops the instance.
// It then finishes the running tasks, returns the others to the broker, and returns nil. It returns an error if a new
// connection cannot help: the key is wrong, the worker is unknown, or another process has the same instance name.
func Run(ctx context.Context, o Options, fn Func) error {
	if err := o.complete(); err != nil {
		return err
	}
	c, err := client.New(o.URL, o.Key)
	if err != nil {
		return err
	}
	if o.Service != "" {
		c = c.ForService(o.Service)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	wait := stream.Backoff{First: firstWait, Max: maxWait}
	free := newSlots()
	for {
		conn, welcome, err := dial(ctx, c, &o)
		if err == nil {
			wait.Reset()
			err = serve(ctx, conn, welcome, fn, free)
			if err == nil {
				return nil
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if stream.Permanent(err) {
			return err
		}
		o.Logger.Warn("the instance is not connected to the server; retrying", "worker", o.Worker, "instance", o.Instance, "error", err)
		if !wait.Wait(ctx) {
			return nil
		}
	}
}

func dial(ctx context.Context, c *client.Client, o *Options) (*websocket.Conn, *frame.WorkerWelcome, error) {
	query := url.Values{"instance": {o.Instance}}
	if o.Capacity > 0 {
		query.Set("capacity", strconv.Itoa(o.Capacity))
	}
	var welcome frame.WorkerWelcome
	conn, err := stream.Dial(ctx, c, "/v1/workers/"+url.PathEscape(o.Worker)+"/stream", query, frame.WorkerProtocol, &welcome)
	return conn, &welcome, err
}

// complete takes what is missing from the environment.
func (o *Options) complete() error {
	for _, from := range []struct {
		into *string
		name string
	}{{&o.URL, "FANFARE_URL"}, {&o.Key, "FANFARE_KEY"}, {&o.Service, "FANFARE_SERVICE"}, {&o.Worker, "FANFARE_WORKER"}, {&o.Instance, "FANFARE_INSTANCE"}} {
		if *from.into == "" {
			*from.into = os.Getenv(from.name)
		}
	}
	if o.URL == "" {
		o.URL = "http://127.0.0.1:8085"
	}
	if o.Worker == "" {
		return &fanfare.Error{Code: fanfare.Invalid, Message: "the name of the worker is missing", Hint: "set Options.Worker or FANFARE_WORKER to a name in `workers` of the configuration"}
	}
	if o.Instance == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "host"
		}
		o.Instance = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return nil
}

// faultBody returns the status and the body of a result for an error.
func faultBody(err error) (frame.Status, []byte) {
	status := frame.Fault
	body := frame.FaultBody{Code: "fault", Message: err.Error()}
	if _, ok := errors.AsType[*retryError](err); ok {
		status = frame.Retry
	}
	if f, ok := errors.AsType[*Fault](err); ok {
		body = frame.FaultBody{Code: f.Code, Message: f.Message, Detail: f.Detail}
		if body.Code == "" {
			body.Code = "fault"
		}
	}
	text, err := json.Marshal(body)
	if err != nil { // strings always have a form in JSON
		text = []byte(`{"code":"fault","message":"the fault cannot be encoded as JSON"}`)
	}
	return status, text
}
