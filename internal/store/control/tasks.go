package control

import (
	"context"

	"fanfare.dev/fanfare/internal/store"
)

// A TaskRecord is a task of an operator.
type TaskRecord struct {
	ID   string
	Body string // JSON
}

// Tasks returns all tasks by id.
func (s *Store) Tasks(ctx context.Context) (list []TaskRecord, err error) {
	err = s.part.Read(ctx, func(session store.Session) error {
		list = nil
		return session.Each("tasks", func(r store.Row) error {
			list = append(list, TaskRecord{r.Text(0), r.Text(1)})
			return nil
		})
	})
	return list, err
}

// PutTask stores a task that is new or has changed, and deletes others. It is durable when it returns.
func (s *Store) PutTask(ctx context.Context, task TaskRecord, deleted []string) error {
	return s.part.Write(ctx, func(session store.Session) error {
		if err := session.Run("task_put", task.ID, task.Body); err != nil {
			return err
		}
		for _, id := range deleted {
			if err := session.Run("task_delete", id); err != nil {
				return err
			}
		}
		return nil
	})
}
