// Package workercall passes requests of the pipeline to workers: those of channels whose worker delivers, of topics with a
// filter, and of templates with a formatter.
package workercall

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/pipeline/deliver/worker"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/broker"
	"fanfare.dev/fanfare/internal/session/call"
)

// Workers passes requests to the instances of workers.
type Workers struct {
	broker     *broker.Broker
	caller     *call.Caller
	definition func(service, worker string) (session.Definition, bool)
}

// New returns Workers. Definition returns the registration of a worker.
func New(b *broker.Broker, definition func(service, worker string) (session.Definition, bool)) *Workers {
	return &Workers{broker: b, caller: call.New(b), definition: definition}
}

// Ready returns an error if no instance of a worker is connected: NotFound if the worker is not registered, otherwise
// Unavailable.
func (w *Workers) Ready(service, name string) error {
	if _, known := w.definition(service, name); !known {
		return &fanfare.Error{Code: fanfare.NotFound, Message: fmt.Sprintf("the service has no worker %q", name), Hint: "register the worker in the section `workers` of the configuration document, then apply the document"}
	}
	for _, info := range w.broker.Workers(service) {
		if info.Name != name {
			continue
		}
		for i := range info.Instances {
			if !info.Instances[i].Draining {
				return nil
			}
		}
	}
	return &fanfare.Error{Code: fanfare.Unavailable, Message: "no instance of worker " + name + " is connected", Hint: "start an instance, or an agent that may run it"}
}

// MessageLimit returns the maximum size of a request, in bytes.
func (w *Workers) MessageLimit(service, name string) int {
	if d, known := w.definition(service, name); known && d.MessageLimit > 0 {
		return d.MessageLimit
	}
	return session.DefaultMessageLimit
}

// Start is Ready. If no instance is connected, it also lets agents start one.
func (w *Workers) Start(service, name string) error {
	err := w.Ready(service, name)
	if fanfare.CodeOf(err) == fanfare.Unavailable {
		w.caller.KeepInstance(service, name)
	}
	return err
}

// Call passes messages of a channel to its worker.
func (w *Workers) Call(ctx context.Context, service, name, channel string, request []byte) ([]byte, error) {
	response, err := w.caller.Call(ctx, call.Target{Service: service, Worker: name, Purpose: "channel " + channel}, "deliver", request, 0)
	if fault, is := errors.AsType[*call.Fault](err); is {
		return nil, &worker.Fault{Message: fault.Message}
	}
	return response, err
}

// Format passes recipients of a template to its formatter.
func (w *Workers) Format(ctx context.Context, service, name, template string, request []byte) ([]byte, error) {
	return w.call(ctx, call.Target{Service: service, Worker: name, Purpose: "template " + template}, "format", request)
}

// Filter passes recipients of a topic to its filter.
func (w *Workers) Filter(ctx context.Context, service, name, topic string, request []byte) ([]byte, error) {
	return w.call(ctx, call.Target{Service: service, Worker: name, Purpose: "topic " + topic}, "filter", request)
}

// readyInterval is the time between two checks whether the worker of a call still has an instance.
const readyInterval = time.Second

// call returns the response of a worker. It returns the error of Ready if no instance of the worker is connected, also when
// the last one leaves before it has answered.
func (w *Workers) call(ctx context.Context, to call.Target, action string, request []byte) ([]byte, error) {
	if err := w.Start(to.Service, to.Worker); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		check := time.NewTicker(readyInterval)
		defer check.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-check.C:
				err := w.Ready(to.Service, to.Worker)
				// Otherwise the next instance would get the request in addition to the one of the next call.
				if err != nil && w.caller.EndWithoutInstance(ctx, to) {
					cancel(err)
					return
				}
			}
		}
	}()
	response, err := w.caller.Call(ctx, to, action, request, 0)
	if err == nil {
		return response, nil
	}
	if notReady := w.Ready(to.Service, to.Worker); notReady != nil {
		return nil, notReady // the call was cancelled, or another one has ended the session
	}
	return nil, err
}
