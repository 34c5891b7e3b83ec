package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/session"
	"fanfare.dev/fanfare/internal/session/agentmessage"
)

// A connection is one connection to the server. Reports are combined: only the last one waits.
type connection struct {
	reports chan []byte
	last    []byte
	written chan struct{} // closed when the writer has ended
}

// stayConnected connects until ctx ends. It returns an error if the first connection is refused for a reason that lasts.
func (a *Agent) stayConnected(ctx context.Context) error {
	pause, ever := a.firstPause, false
	for {
		began := time.Now()
		conn, err := a.o.Dial(ctx)
		if err == nil {
			ever = true
			a.o.Logger.Info("connected to the server", "url", a.o.URL, "agent", a.o.Config.Name)
			err = a.converse(ctx, conn)
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the connection ended because it was told to
		}
		if !ever && lasting(err) {
			return err
		}
		if time.Since(began) >= a.healthyAfter {
			pause = a.firstPause
		}
		a.o.Logger.Warn("the agent is not connected to the server; the instances keep running", "url", a.o.URL, "again_in", pause, "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		pause = min(2*pause, a.longestPause)
	}
}

// lasting reports whether a repetition cannot succeed.
func lasting(err error) bool {
	switch fanfare.CodeOf(err) {
	case fanfare.Unauthenticated, fanfare.Forbidden, fanfare.Invalid:
		return true
	}
	return false
}

// converse sends reports and takes over what the server wants until the connection ends.
func (a *Agent) converse(ctx context.Context, conn session.Conn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = conn.Close(session.CloseNormal, "") }) // ends receive; the connection may be closed already
	c := &connection{reports: make(chan []byte, 1), written: make(chan struct{})}
	a.do(func() { a.online, a.onlineAt = c, time.Now() })
	go func() {
		defer close(c.written)
		defer cancel()
		for {
			select {
			case report, more := <-c.reports:
				if !more || writeReport(conn, report) != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	err := a.receive(conn)
	cancel()
	a.do(func() {
		if a.online == c {
			a.online = nil
		}
	})
	<-c.written
	return err
}

// writeTimeout is how long the server may take to receive a report.
const writeTimeout = 10 * time.Second

func writeReport(conn session.Conn, report []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	return conn.Write(ctx, report)
}

func (a *Agent) receive(conn session.Conn) error {
	for {
		b, err := conn.Read(context.Background())
		if err != nil {
			return err
		}
		var m struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(b, &m); err != nil {
			return fmt.Errorf("the server sent a message that is not JSON: %w", err)
		}
		switch m.Type {
		case agentmessage.TypeWant:
			var want agentmessage.Want
			if err := json.Unmarshal(b, &want); err != nil {
				return fmt.Errorf("the server sent a message that is not valid: %w", err)
			}
			a.do(func() { a.want(&want) })
		case agentmessage.TypeProblem:
			var p agentmessage.Problem
			if err := json.Unmarshal(b, &p); err != nil {
				return fmt.Errorf("the server sent a message that is not valid: %w", err)
			}
			return &fanfare.Error{Code: fanfare.Code(p.Code), Message: p.Message, Hint: p.Hint}
		}
	}
}

// report sends the state to the server if it has changed.
func (a *Agent) report() {
	c := a.online
	if c == nil {
		return
	}
	b, err := json.Marshal(a.state())
	if err != nil {
		a.o.Logger.Error("the report cannot be encoded as JSON", "error", errors.Unwrap(err))
		return
	}
	if bytes.Equal(b, c.last) {
		return
	}
	c.last = b
	select {
	case <-c.reports:
	default:
	}
	c.reports <- b
}

// flush waits briefly until the last report is written.
func (a *Agent) flush() {
	if a.online == nil {
		return
	}
	close(a.online.reports)
	select {
	case <-a.online.written:
	case <-time.After(time.Second):
	}
}

func (a *Agent) state() *agentmessage.Report {
	r := &agentmessage.Report{Type: agentmessage.TypeReport, Host: a.host, Version: a.o.Version, Cores: runtime.NumCPU(), MaxInstances: a.o.Config.MaxInstances, Stopping: a.stopping, Workers: []agentmessage.Worker{}}
	for _, k := range slices.SortedFunc(maps.Keys(a.workers), compareKeys) {
		r.Workers = append(r.Workers, a.workers[k].state())
	}
	return r
}

func (w *worker) state() agentmessage.Worker {
	m := agentmessage.Worker{Service: w.key.service, Worker: w.key.worker, MaxInstances: w.rule.MaxInstances, Wanted: w.wanted, LastExit: w.lastExit, Refusal: w.refusal}
	connected := false
	for _, s := range w.slots {
		m.Failures = max(m.Failures, s.failures, s.launch.failures)
		if s.process == nil {
			m.Instances = append(m.Instances, agentmessage.Instance{State: agentmessage.Waiting, Version: s.launch.version})
		}
	}
	running := slices.SortedFunc(maps.Keys(w.processes), func(a, b *process) int { return a.startedAt.Compare(b.startedAt) })
	for _, p := range running {
		if p.step != stepCommand {
			continue
		}
		i := agentmessage.Instance{Name: p.name, State: agentmessage.Starting, Version: p.launch.version, PID: p.cmd.Process.Pid, StartedAt: p.startedAt.UTC()}
		switch {
		case p.draining:
			i.State = agentmessage.Draining
		case p.connected:
			i.State, connected = agentmessage.Running, true
		}
		m.Instances = append(m.Instances, i)
	}
	if connected {
		m.Failures = 0
	}
	return m
}
