package wire

import "time"

// A TaskRequest starts a task.
type TaskRequest struct {
	Action string     `json:"action" enum:"retry-parked,drop-parked,approve-broadcasts,cancel-broadcasts,remove-suppressions,end-subscriptions" doc:"what to do with each object that matches"`
	Filter TaskFilter `json:"filter,omitzero" doc:"which objects; absent: all of the service"`
	Reason string     `json:"reason,omitempty" maxLength:"200" doc:"reason, shown with the task, and with each broadcast or subscription that it ends"`
}

// A TaskFilter selects the objects of a task. Members that are absent select all.
type TaskFilter struct {
	Topic       string `json:"topic,omitempty" maxLength:"128" doc:"only broadcasts of this topic, or subscriptions to it"`
	Channel     string `json:"channel,omitempty" maxLength:"128" doc:"only subscriptions over this channel"`
	Subscriber  string `json:"subscriber,omitempty" maxLength:"2000" doc:"only subscriptions of this subscriber (id), or to this address. A task shows an id of the server (per-...) in its place, and never the address"`
	State       string `json:"state,omitempty" enum:"active,paused" doc:"only subscriptions in this state"`
	Reason      string `json:"reason,omitempty" enum:"soft_bounces,imported,unsubscribed,hard_bounce,manual,complaint" doc:"only suppressions for this reason"`
	AllServices bool   `json:"all_services,omitempty" doc:"the suppressions for all services; requires a key with the scope admin for all services"`
}

// A Task does one thing to all objects that match a filter.
type Task struct {
	ID        string     `json:"id" doc:"id of the task (tsk-...)"`
	Service   string     `json:"service,omitempty" doc:"service of the objects; absent: of all services"`
	Action    string     `json:"action" doc:"what is done with each object"`
	Filter    TaskFilter `json:"filter" doc:"which objects"`
	Reason    string     `json:"reason,omitempty" doc:"reason of the person who started it"`
	State     string     `json:"state" doc:"running, completed, failed or cancelled"`
	Found     int64      `json:"found" doc:"number of objects that were found so far; more can follow while the task is running"`
	Done      int64      `json:"done" doc:"number of objects with which it is done"`
	Failed    int64      `json:"failed" doc:"number of objects with which it failed"`
	LastError string     `json:"last_error,omitempty" doc:"the latest error, of one object or of the task"`
	KeyID     string     `json:"key_id,omitempty" doc:"key of the person who started it"`
	KeyName   string     `json:"key_name,omitempty" doc:"name of that key, or of the person"`
	StartedAt time.Time  `json:"started_at" doc:"when it was started; objects that are newer are not touched"`
	EndedAt   *time.Time `json:"ended_at,omitempty" doc:"when it ended"`
}

// A TaskPage is a page of tasks, the newest first.
type TaskPage struct {
	Tasks []Task `json:"tasks" doc:"tasks of this page"`
	Next  string `json:"next,omitempty" doc:"cursor of the next page; absent on the last page"`
}
