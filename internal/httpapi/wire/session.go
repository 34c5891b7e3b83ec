package wire

import "time"

// A SessionRequest is a session to open.
type SessionRequest struct {
	Worker       string `json:"worker" doc:"name of the worker that runs the requests"`
	Kind         string `json:"kind,omitempty" enum:"interactive,durable" doc:"interactive: the session is held in memory and ends with its broker; durable: requests and responses are stored in the database. Default: interactive"`
	Name         string `json:"name,omitempty" maxLength:"64" doc:"name that is unique among the open sessions of the service. If a session with this name is open, the same options return it, and others are a conflict. Default: none"`
	MinInstances int    `json:"min_instances,omitempty" minimum:"0" maximum:"10000" doc:"number of instances that agents keep ready while the session is open; default: 0"`
	MaxInstances int    `json:"max_instances,omitempty" minimum:"0" maximum:"10000" doc:"maximum number of instances that work for the session at the same time; default, and 0: no limit"`
	Priority     int    `json:"priority,omitempty" minimum:"1" maximum:"100" doc:"weight of its share of the instances; default: 50"`
	Resends      *int   `json:"resends,omitempty" minimum:"0" maximum:"100" doc:"how often a request is sent again after a retry or a timeout; 0: it runs at most once. Default: 3"`
	IdleTimeout  string `json:"idle_timeout,omitempty" doc:"the session ends after this time without clients and work, such as 30m; default: 5m for interactive sessions, 168h for durable ones"`
	TotalTimeout string `json:"total_timeout,omitempty" doc:"the session ends this long after it was opened, such as 24h; at most 720h. Default: 720h"`
}

// A Session is a session with its counters.
type Session struct {
	ID           string    `json:"id" doc:"ses- and a number"`
	Service      string    `json:"service"`
	Worker       string    `json:"worker"`
	Kind         string    `json:"kind" enum:"interactive,durable"`
	Name         string    `json:"name,omitempty"`
	State        string    `json:"state" enum:"open,closed,lost,purged" doc:"closed: by a client, an operator or a limit; lost: an interactive session whose broker ended; purged: closed, and its requests and responses are removed"`
	Reason       string    `json:"reason,omitempty" doc:"why it ended"`
	OpenedAt     time.Time `json:"opened_at"`
	ClosedAt     time.Time `json:"closed_at,omitzero"`
	OpenedBy     string    `json:"opened_by,omitempty" doc:"id of the key that opened it, or the person who did"`
	MinInstances int       `json:"min_instances"`
	MaxInstances int       `json:"max_instances" doc:"0: no limit"`
	Priority     int       `json:"priority"`
	Resends      int       `json:"resends"`
	IdleTimeout  string    `json:"idle_timeout"`
	TotalTimeout string    `json:"total_timeout"`

	Clients     []SessionClient `json:"clients" doc:"in the order in which they first connected"`
	Instances   int             `json:"instances" doc:"number of instances that work for the session at the moment"`
	Queued      int64           `json:"queued" doc:"number of requests that wait for an instance"`
	Running     int64           `json:"running" doc:"number of tasks at instances"`
	Requests    uint64          `json:"requests" doc:"number of requests so far"`
	Responses   uint64          `json:"responses" doc:"number of responses so far"`
	Faults      uint64          `json:"faults" doc:"number of these that are faults"`
	Resent      uint64          `json:"resent" doc:"number of requests that were sent again"`
	LateResults uint64          `json:"late_results" doc:"number of results that arrived after the timeout of their task and were dropped"`
	Problem     *Member         `json:"problem,omitempty" doc:"why no instance of the worker can start although one is wanted, with the last output of the command; absent: an instance is connected, or may still start"`
}

// A SessionClient is the stream of a client in a session.
type SessionClient struct {
	Name      string `json:"name"`
	Connected bool   `json:"connected"`
	Requests  uint64 `json:"requests" doc:"number of the last stored request"`
	Accepted  uint64 `json:"accepted" doc:"number of accepted requests, without repetitions and refusals"`
	Responses uint64 `json:"responses" doc:"number of responses"`
	Received  uint64 `json:"received" doc:"number of the last response that the client has confirmed"`
	Queued    int64  `json:"queued" doc:"number of its requests that wait for an instance"`
	Ended     bool   `json:"ended" doc:"the client sends no further requests"`
}

// SessionPage is a page of sessions, the latest first.
type SessionPage struct {
	Sessions []Session `json:"sessions"`
	Next     string    `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// A SessionResponse is a response to a request of a client.
type SessionResponse struct {
	Number   uint64 `json:"number" doc:"from 1, without gaps"`
	Request  uint64 `json:"request" doc:"number of the request"`
	ID       string `json:"id,omitempty" doc:"id of the request, if the client set one"`
	Status   string `json:"status" enum:"ok,fault" doc:"the body of a fault is a JSON object with code, message and detail"`
	Attempts int    `json:"attempts" doc:"how often the request was sent to an instance"`
	Last     bool   `json:"last,omitempty" doc:"no response follows"`
	UserData []byte `json:"user_data,omitempty" doc:"user data of the request, in base64"`
	Body     []byte `json:"body" doc:"the body, in base64"`
	Text     string `json:"text,omitempty" doc:"the body as text, if it is valid UTF-8"`
}

// A ResponsePage is a page of responses, by number.
type ResponsePage struct {
	Responses []SessionResponse `json:"responses"`
	Next      uint64            `json:"next" doc:"value of from for the next page. If the page is empty, no response with this number exists yet"`
}

// A RequestTrace says what happened to a request.
type RequestTrace struct {
	Client     string            `json:"client"`
	Request    uint64            `json:"request" doc:"number of the request"`
	Status     string            `json:"status" enum:"queued,running,ok,fault"`
	QueuedAt   time.Time         `json:"queued_at,omitzero"`
	Dispatched []RequestDispatch `json:"dispatched" doc:"the attempts, in their order"`
	AnsweredAt time.Time         `json:"answered_at,omitzero" doc:"absent: there is no response yet"`
	Response   uint64            `json:"response,omitempty" doc:"number of the response"`
}

// A RequestDispatch is one attempt to run a request.
type RequestDispatch struct {
	At       time.Time `json:"at"`
	Instance string    `json:"instance" doc:"name of the instance"`
	Outcome  string    `json:"outcome,omitempty" enum:"ok,fault,retry,returned,timeout,lost" doc:"absent: it is running"`
}

// A Worker is a registered program and its instances.
type Worker struct {
	WorkerSettings
	Service   string           `json:"service"`
	Sessions  int              `json:"sessions" doc:"number of open sessions"`
	Queued    int64            `json:"queued" doc:"number of requests that wait for an instance"`
	Running   int64            `json:"running" doc:"number of tasks at instances"`
	Instances []WorkerInstance `json:"instances" doc:"connected instances, by name"`
	Wanted    int              `json:"wanted" doc:"number of instances that its sessions need"`
	Problem   *Member          `json:"problem,omitempty" doc:"why no instance can start although one is wanted, with the last output of the command; absent: an instance is connected, or may still start"`
}

// WorkerSettings register a worker.
type WorkerSettings struct {
	Name        string            `json:"name,omitempty" doc:"can be omitted if the path contains it"`
	Title       string            `json:"title,omitempty" doc:"display name"`
	Command     []string          `json:"command,omitempty" doc:"program and arguments that an agent runs, without a shell; default: agents do not start it. The local file of an agent decides whether it may run"`
	Environment map[string]string `json:"environment,omitempty" doc:"variables in addition to those of the agent"`
	Directory   string            `json:"directory,omitempty" doc:"directory in which the command runs"`
	Prepare     []string          `json:"prepare,omitempty" doc:"command that runs once before the first instance of a version on a host"`
	Release     []string          `json:"release,omitempty" doc:"command that runs once after the last instance of a version on a host"`
	Version     string            `json:"version,omitempty" doc:"a change replaces the instances one after the other"`

	Concurrency  int                     `json:"concurrency,omitempty" minimum:"1" maximum:"1024" doc:"number of tasks that an instance runs at the same time; default: 1"`
	Prefetch     string                  `json:"prefetch,omitempty" doc:"number of further tasks that an instance holds per running task, at most 4096, or auto; a request may give a number. Default: auto, which follows the measured duration of the tasks"`
	MessageLimit string                  `json:"message_limit,omitempty" doc:"maximum size of a request or a response, such as 64KB, at most 1MB; default: 64KB"`
	Timeout      string                  `json:"timeout,omitempty" doc:"maximum duration of a task, such as 30s; default: none"`
	Actions      map[string]WorkerAction `json:"actions,omitempty" doc:"actions that have their own timeout"`
	StartTimeout string                  `json:"start_timeout,omitempty" doc:"time until a started instance must have connected; default: 30s"`
	StopTimeout  string                  `json:"stop_timeout,omitempty" doc:"time after which an instance that has been signaled to stop is killed; default: 30s"`
}

// A WorkerAction is a kind of request with its own timeout.
type WorkerAction struct {
	Timeout string `json:"timeout" doc:"maximum duration of a task with this action, such as 5m"`
}

// A WorkerInstance is a connected process of a worker.
type WorkerInstance struct {
	Name        string    `json:"name"`
	Remote      string    `json:"remote,omitempty" doc:"address from which it is connected"`
	ConnectedAt time.Time `json:"connected_at"`
	Capacity    int       `json:"capacity" doc:"number of tasks that it runs at the same time"`
	Running     int       `json:"running" doc:"number of tasks that it has"`
	Draining    bool      `json:"draining,omitempty" doc:"it finishes its tasks and gets no more"`
	Done        uint64    `json:"done" doc:"number of tasks that it has finished"`
	Faults      uint64    `json:"faults" doc:"number of these that were faults"`
	SkippedTo   time.Time `json:"skipped_until,omitzero" doc:"it gets no tasks until then, because a connection with this name was lost"`
}

// WorkerPage is a page of workers, by name.
type WorkerPage struct {
	Workers []Worker `json:"workers"`
	Next    string   `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}

// An Agent is a connected agent, which starts instances of workers on its machine.
type Agent struct {
	Name         string        `json:"name"`
	Service      string        `json:"service,omitempty" doc:"the only service that its key can access; absent: all services"`
	Remote       string        `json:"remote,omitempty" doc:"address from which it is connected"`
	Host         string        `json:"host" doc:"name of its machine"`
	Version      string        `json:"version" doc:"version of Fanfare that it runs"`
	Cores        int           `json:"cores" doc:"number of processors of its machine"`
	MaxInstances int           `json:"max_instances" doc:"maximum number of instances that its local file allows"`
	Stopping     bool          `json:"stopping,omitempty" doc:"it drains its instances and ends"`
	ConnectedAt  time.Time     `json:"connected_at"`
	Workers      []AgentWorker `json:"workers" doc:"workers that its local file lists"`
}

// An AgentWorker is a worker on the machine of an agent.
type AgentWorker struct {
	Service      string          `json:"service"`
	Worker       string          `json:"worker"`
	MaxInstances int             `json:"max_instances" doc:"maximum number of instances that the local file allows"`
	Wanted       int             `json:"wanted" doc:"number of instances that the server requests"`
	Instances    []AgentInstance `json:"instances,omitempty"`
	Failures     int             `json:"failures,omitempty" doc:"number of consecutive failed starts, while no instance is connected"`
	LastExit     *AgentExit      `json:"last_exit,omitempty" doc:"the last unexpected end of a process"`
	Refusal      *AgentRefusal   `json:"refusal,omitempty" doc:"part of the registration that the local file does not allow"`
}

// An AgentInstance is one process of a worker, or the place of one that waits for its start.
type AgentInstance struct {
	Name      string    `json:"name,omitempty" doc:"absent: it waits for its start"`
	State     string    `json:"state" enum:"waiting,starting,running,draining"`
	Version   string    `json:"version,omitempty" doc:"version of the worker"`
	PID       int       `json:"pid,omitempty" doc:"process id"`
	StartedAt time.Time `json:"started_at,omitzero"`
}

// An AgentExit says how a process ended.
type AgentExit struct {
	Instance string    `json:"instance,omitempty"`
	Step     string    `json:"step" enum:"prepare,command,release" doc:"command that ended"`
	At       time.Time `json:"at"`
	Reason   string    `json:"reason"`
	Output   []string  `json:"output,omitempty" doc:"its last lines of output"`
}

// An AgentRefusal says why an agent does not run a worker.
type AgentRefusal struct {
	Pointer string    `json:"pointer" doc:"field of the registration, such as /command"`
	Message string    `json:"message"`
	Hint    string    `json:"hint,omitempty"`
	At      time.Time `json:"at"`
}

// AgentPage is a page of agents, by name.
type AgentPage struct {
	Agents []Agent `json:"agents"`
	Next   string  `json:"next,omitempty" doc:"the cursor of the next page; absent at the end"`
}
