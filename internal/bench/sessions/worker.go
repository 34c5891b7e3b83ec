package sessions

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"time"

	"fanfare.dev/fanfare/client/worker"
	"fanfare.dev/fanfare/internal/bench/harness"
)

// serverSpec says how a process reaches the server.
type serverSpec struct {
	URL     string
	Key     string
	Service string
}

// workerSpec is what an instance is told.
type workerSpec struct {
	serverSpec
	Worker   string
	Instance string
	Duration time.Duration // of a task; 0: it returns at once
}

// served is what an instance has done, in nanoseconds of Unix time.
type served struct {
	Tasks int64
	First int64 // start of the first task
	Last  int64 // end of the last one
	Busy  int64 // sum of all tasks
}

// WorkerPart answers requests with their own bodies until its input ends, and then writes what it has done.
func WorkerPart(ctx context.Context, spec workerSpec, in io.Reader, out *json.Encoder) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error is an end, too
		stop()
	}()
	var mu sync.Mutex
	var sum served
	o := worker.Options{URL: spec.URL, Key: spec.Key, Service: spec.Service, Worker: spec.Worker, Instance: spec.Instance, Logger: slog.New(slog.DiscardHandler)}
	err := worker.Run(ctx, o, func(ctx context.Context, t *worker.Task) ([]byte, error) {
		start := time.Now()
		if spec.Duration > 0 {
			if err := harness.Pause(ctx, spec.Duration); err != nil {
				return nil, err
			}
		}
		end := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if sum.Tasks++; sum.First == 0 {
			sum.First = start.UnixNano()
		}
		sum.Last = end.UnixNano()
		sum.Busy += int64(end.Sub(start))
		return t.Body, nil
	})
	if err != nil {
		return err
	}
	return out.Encode(sum)
}

// startWorkers starts instances.
func startWorkers(l *harness.Env, s *harness.Server, count int, duration time.Duration) (list []*harness.Process, err error) {
	if l.Worker != "" && duration > 0 {
		return nil, harness.InvalidFlag("worker", "cannot be used with tasks of a given duration", "use it with T1 or T2")
	}
	for i := range count {
		instance := "bench-" + string(rune('a'+i))
		if l.Worker != "" {
			env := []string{"FANFARE_URL=" + s.URL, "FANFARE_KEY=" + s.Key, "FANFARE_SERVICE=" + serviceName, "FANFARE_WORKER=" + workerName, "FANFARE_INSTANCE=" + instance}
			c, err := l.Spawn("worker", env, "/bin/sh", "-c", "exec "+l.Worker)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
			continue
		}
		c, err := l.StartPart("worker", workerSpec{serverSpec{s.URL, s.Key, serviceName}, workerName, instance, duration})
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	return list, nil
}

// stopWorkers ends instances and adds up what they have done; other programs do not report it.
func stopWorkers(l *harness.Env, list []*harness.Process) (all served, err error) {
	for _, c := range list {
		if l.Worker != "" {
			if err := c.Stop(); err != nil {
				return all, err
			}
			continue
		}
		if err := c.CloseInput(); err != nil {
			return all, err
		}
		var one served
		if err := c.ReadJSON(&one); err != nil {
			return all, err
		}
		if err := c.Wait(); err != nil {
			return all, err
		}
		all.Tasks += one.Tasks
		all.Busy += one.Busy
		if one.Tasks > 0 && (all.First == 0 || one.First < all.First) {
			all.First = one.First
		}
		all.Last = max(all.Last, one.Last)
	}
	return all, nil
}
