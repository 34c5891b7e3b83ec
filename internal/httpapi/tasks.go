package httpapi

import (
	"context"
	"fmt"
	"math"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/httpapi/httpio"
	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// Tasks act on all objects that match a filter. A service of "" means all services.
type Tasks interface {
	// Start stores and starts a task. It checks the rights of the starter.
	Start(ctx context.Context, by catalog.Principal, request, service string, in wire.TaskRequest) (wire.Task, error)
	// List returns the tasks, the newest first. With shared, the tasks of a service include those for all services.
	List(service string, shared bool) []wire.Task
	Task(service, id string) (wire.Task, error)
	// Cancel stops a task. When it returns, the task acts on no further object.
	Cancel(ctx context.Context, by catalog.Principal, service, id string) (wire.Task, error)
}

func (a *API) taskRoutes() {
	op := func(id, method, path, summary string) huma.Operation {
		return huma.Operation{OperationID: id, Method: method, Path: path, Tags: []string{"operations"}, Summary: summary}
	}
	start := op("start-task", http.MethodPost, "/v1/tasks", "Act on all objects that match a filter")
	start.Description = "The task continues in the background, also after a restart. It acts on each object as the request for one object does, and needs the same scope: admin for parked work and for cancelling broadcasts, " +
		"approve for approving broadcasts, and subscribe for suppressions and subscriptions. The scope is checked again before each object. Objects that are newer than the task are not touched."
	start.Parameters = []*huma.Param{service()}
	start.RequestBody = body[wire.TaskRequest](a, "The action, and the objects", "application/json")
	replies[wire.Task](a, &start, http.StatusCreated, "The task, stored and started", "application/json")
	a.handle(start, mayStartTasks, func(x *responseWriter, r *http.Request, c caller) error {
		var in wire.TaskRequest
		if err := httpio.ReadJSON(x, r, &in); err != nil {
			return err
		}
		s, err := a.serviceOfTask(c, &in)
		if err != nil {
			return err
		}
		task, err := a.deps.Tasks.Start(r.Context(), c.principal, x.id, s, in)
		if err != nil {
			return err
		}
		a.note(r.Context(), audit.Operation{Service: task.Service, Action: "create", Kind: "task", Name: task.ID}, nil)
		return httpio.WriteJSON(x, http.StatusCreated, "application/json", task)
	})

	read(a, op("list-tasks", http.MethodGet, "/v1/tasks", "List the tasks, the newest first"), mayFollowTasks, func(_ context.Context, c caller, in *Page) (page wire.TaskPage, err error) {
		page.Tasks, page.Next, err = pageOf(listingOf("tasks", c.service), in, a.deps.Tasks.List(c.service, c.principal.Service == ""), func(t *wire.Task) string {
			return fmt.Sprintf("%019d", math.MaxInt64-t.StartedAt.UnixMicro())
		})
		page.Tasks = orEmpty(page.Tasks)
		return page, err
	})
	type one struct {
		Named
		ID string `path:"id" doc:"id of the task (tsk-...)"`
	}
	read(a, op("get-task", http.MethodGet, "/v1/tasks/{id}", "Get a task with its progress"), mayFollowTasks, func(_ context.Context, c caller, in *one) (wire.Task, error) {
		return a.deps.Tasks.Task(c.principal.Service, in.ID)
	})
	cancel := op("cancel-task", http.MethodPost, "/v1/tasks/{id}/cancel", "Cancel a task")
	cancel.Description = "When the response arrives, the task acts on no further object. It needs the scope of the action. Its changes remain."
	read(a, cancel, mayStartTasks, func(ctx context.Context, c caller, in *one) (wire.Task, error) {
		task, err := a.deps.Tasks.Cancel(ctx, c.principal, c.principal.Service, in.ID)
		if err == nil {
			a.note(ctx, audit.Operation{Service: task.Service, Action: "cancel", Kind: "task", Name: task.ID}, nil)
		}
		return task, err
	})
}

// serviceOfTask returns the service of the list that a task is about: parked work of all services is one list for operators, and subscriptions and
// suppressions are lists of one service.
func (a *API) serviceOfTask(c caller, in *wire.TaskRequest) (string, error) {
	switch in.Action {
	case "retry-parked", "drop-parked":
		return c.principal.Service, nil
	case "remove-suppressions", "end-subscriptions":
		if !in.Filter.AllServices {
			return a.oneService(c)
		}
	}
	return c.service, nil
}
