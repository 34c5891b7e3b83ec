package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"

	"fanfare.dev/fanfare/internal/httpapi/wire"
)

// A TaskRequest starts a task.
type TaskRequest = wire.TaskRequest

// A TaskFilter selects the objects of a task.
type TaskFilter = wire.TaskFilter

// A Task does one thing to all objects that match a filter.
type Task = wire.Task

// StartTask starts a task. It continues in the background, also after a restart of the server.
func (c *Client) StartTask(ctx context.Context, r TaskRequest) (Task, error) {
	var task Task
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/tasks"}, r, &task)
	return task, err
}

// Tasks yields the tasks, the newest first. It ends at the first error, which is its last pair.
func (c *Client) Tasks(ctx context.Context) iter.Seq2[Task, error] {
	return List[Task](ctx, c, "/v1/tasks", "tasks", nil)
}

// Task returns a task with its progress.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	var task Task
	err := c.call(ctx, get("/v1/tasks/"+url.PathEscape(id), nil), nil, &task)
	return task, err
}

// CancelTask cancels a task. When it returns, the task acts on no further object.
func (c *Client) CancelTask(ctx context.Context, id string) (Task, error) {
	var task Task
	err := c.call(ctx, request{method: http.MethodPost, path: "/v1/tasks/" + url.PathEscape(id) + "/cancel", repeatable: true}, nil, &task)
	return task, err
}
