package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/problem"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/session"
)

// Agents knows the connected agents, which start instances of workers.
type Agents interface {
	// Agents lists the agents that may run workers of a service, or all for "", by name.
	Agents(service string) []wire.Agent
	// Failure says why no instance of a worker can start although one is wanted, or returns nil.
	Failure(service, worker string) *fanfare.Error
	// ServeAgent serves the connection of an agent until it ends, and closes it. service is the
	// only one that its key may access, or "".
	ServeAgent(ctx context.Context, conn session.Conn, service, agent, remote string) error
}

func (a *API) workerRoutes() {
	list := listOp("list-workers", "/v1/workers", "sessions", "List the workers of a service with their instances, by name")
	read(a, list, mayRead, func(_ context.Context, c caller, in *Page) (page wire.WorkerPage, err error) {
		service, err := a.oneService(c)
		if err != nil {
			return page, err
		}
		some, next, err := pageOf(listingOf("workers", service), in, a.deps.Documents.Configuration().Workers(service), func(w **catalog.Worker) string { return (*w).Name })
		page.Workers, page.Next = make([]wire.Worker, len(some)), next
		running, wanted := a.runningWorkers(service)
		for i, w := range some {
			page.Workers[i] = workerOf(w, running[w.Name], wanted[w.Name])
			page.Workers[i].Problem = a.startProblem(service, w.Name)
		}
		return page, err
	})

	kind := memberKind[wire.WorkerSettings]{kind: "worker", path: "/v1/workers/{worker}", tag: "configuration", change: mayConfigure,
		params: []*huma.Param{param("worker", "name of the worker")},
		about:  "Registers a program that runs the requests of sessions. An agent runs its command only if the local configuration file of the agent allows it.",
		gone:   "Its open sessions stay open, and their requests wait until it is registered again.",
		see: func(c catalog.Configuration, m document.Member) (wire.WorkerSettings, bool) {
			w := c.Worker(m.Service, m.Name)
			if w == nil {
				return wire.WorkerSettings{}, false
			}
			return workerSettings(w), true
		}}
	get := huma.Operation{OperationID: "get-worker", Method: http.MethodGet, Path: kind.path, Tags: []string{"sessions"}, Summary: "Get a worker with its instances",
		Description: "The ETag is that of the settings.", Parameters: []*huma.Param{param("worker", "name of the worker"), service()}}
	replies[wire.Worker](a, &get, http.StatusOK, "The settings, and the connected instances", "application/json")
	a.handle(get, mayRead, func(x *responseWriter, r *http.Request, c caller) error {
		service, err := a.oneService(c)
		if err != nil {
			return err
		}
		w := a.deps.Documents.Configuration().Worker(service, r.PathValue("worker"))
		if w == nil {
			return problem.NotFound("worker", r.PathValue("worker"))
		}
		if err := setTag(x, workerSettings(w)); err != nil {
			return err
		}
		running, wanted := a.runningWorkers(service)
		out := workerOf(w, running[w.Name], wanted[w.Name])
		out.Problem = a.startProblem(service, w.Name)
		return httpio.WriteJSON(x, http.StatusOK, "application/json", out)
	})
	addChanges(a, kind)

	agents := listOp("list-agents", "/v1/agents", "sessions", "List the connected agents, by name")
	agents.Description = "An agent (`fanfare workers`) starts instances of workers on its machine. The list shows its workers with their instances, their last failure, and what the local configuration file of the agent does not allow."
	read(a, agents, mayRead, func(_ context.Context, c caller, in *Page) (page wire.AgentPage, err error) {
		page.Agents, page.Next, err = pageOf(listingOf("agents", c.service), in, a.deps.Agents.Agents(c.service), func(g *wire.Agent) string { return g.Name + "\x00" + g.Service })
		return page, err
	})
}

// startProblem says why no instance of a worker can start, or returns nil.
func (a *API) startProblem(service, worker string) *wire.Member {
	reason := a.deps.Agents.Failure(service, worker)
	if reason == nil {
		return nil
	}
	m := wire.MemberOf(reason)
	return &m
}

// runningWorkers returns the state of the workers of a service, and the instances that they need.
func (a *API) runningWorkers(service string) (running map[string]*session.WorkerInfo, wanted map[string]int) {
	running, wanted = map[string]*session.WorkerInfo{}, map[string]int{}
	all := a.deps.Sessions.Workers(service)
	for i := range all {
		running[all[i].Name] = &all[i]
	}
	for _, d := range a.deps.Sessions.Demand() {
		if d.Service == service {
			wanted[d.Worker] = d.Instances
		}
	}
	return running, wanted
}

func workerSettings(w *catalog.Worker) wire.WorkerSettings {
	return shownAs[wire.WorkerSettings](w.WorkerSettings, wire.WorkerSettings{Name: w.Name})
}

// workerOf returns a worker with its state; running is nil if it has had no session and no instance.
func workerOf(w *catalog.Worker, running *session.WorkerInfo, wanted int) wire.Worker {
	out := wire.Worker{WorkerSettings: workerSettings(w), Service: w.Service, Instances: []wire.WorkerInstance{}, Wanted: wanted}
	if running == nil {
		return out
	}
	out.Sessions, out.Queued, out.Running = running.Sessions, running.Queued, running.Running
	for _, i := range running.Instances {
		n := wire.WorkerInstance{Name: i.Name, Remote: i.Remote, ConnectedAt: i.ConnectedAt.UTC(), Capacity: i.Capacity, Running: i.Running, Draining: i.Draining, Done: i.Done, Faults: i.Faults}
		if !i.SkippedTo.IsZero() {
			n.SkippedTo = i.SkippedTo.UTC()
		}
		out.Instances = append(out.Instances, n)
	}
	return out
}
