package server

import (
	"context"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/admin/workers"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/pipeline/workercall"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/broker"
	"fanfare.dev/fanfare/internal/session/fleet"
	"fanfare.dev/fanfare/internal/session/sessionlog"
)

// startSessions takes over the durable sessions, and starts to dispatch requests.
func (c *components) startSessions(ctx context.Context) (err error) {
	c.progress.Begin("load sessions", 0)
	log := sessionlog.New(c.db)
	c.sessions, err = broker.New(ctx, broker.Options{Log: log, Definition: c.workerDefinition, Clock: c.clock, Logger: c.log})
	if err != nil {
		return err
	}
	c.onStop(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), max(c.config.DrainTimeout, time.Second))
		defer cancel()
		return c.sessions.Stop(ctx)
	})
	c.fleet = fleet.New(fleet.Options{Demand: c.sessions.Demand, Definition: c.workerDefinition, Instances: c.workerInstances, Refused: c.recordRefusal, Clock: c.clock, Logger: c.log})
	c.background(c.fleet.Run)
	c.workers = workercall.New(c.sessions, c.workerDefinition)
	return nil
}

// workerInstances returns the connected instances of a worker.
func (c *components) workerInstances(service, name string) []session.InstanceInfo {
	for _, w := range c.sessions.Workers(service) {
		if w.Name == name {
			return w.Instances
		}
	}
	return nil
}

// recordRefusal writes an audit entry: the local file of an agent does not allow a registration.
func (c *components) recordRefusal(r fleet.Refusal) {
	ctx := audit.WithActor(context.Background(), audit.Actor{KeyName: "agent " + r.Agent})
	detail := &audit.Detail{Fields: []audit.FieldChange{{Field: strings.TrimPrefix(r.Pointer, "/"), New: r.Message}, {Field: "host", New: r.Host}}}
	if err := c.registry.Record(ctx, audit.Operation{Service: r.Service, Action: "refuse", Kind: catalog.KindWorker, Name: r.Worker}, detail); err != nil {
		c.log.Error("the refusal of an agent could not be recorded in the audit log", "service", r.Service, "worker", r.Worker, "agent", r.Agent, "error", err)
	}
}

// workerDefinition returns the registration of a worker that is in force.
func (c *components) workerDefinition(service, name string) (session.Definition, bool) {
	w := c.registry.Configuration().Worker(service, name)
	if w == nil {
		return session.Definition{}, false
	}
	return w.Definition(), true
}

// workerReport reports the workers that have sessions or instances.
func (c *components) workerReport() workers.Report {
	return workers.Report{Services: c.registry, Broker: c.sessions}
}
