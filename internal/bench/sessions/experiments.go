package sessions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"fanfare.dev/fanfare/client/session"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/loadgen"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	serviceName = loadgen.Service
	workerName  = "echo"
	clients     = 8
	instances   = 2
	hosts       = 8 // of T3
)

// configuration registers the worker.
func configuration() []byte {
	return fmt.Appendf(nil, "service: %s\nworkers:\n  %s: {concurrency: 1, message_limit: 1MiB}\n", serviceName, workerName)
}

// start starts a server with the worker, and its instances.
func start(l *harness.Env, data string, count int, duration time.Duration) (*harness.Server, []*harness.Process, error) {
	s, err := l.StartServer(data)
	if err != nil {
		return nil, nil, err
	}
	if _, err := s.API.Apply(l.Ctx, configuration(), false); err != nil {
		return nil, nil, err
	}
	list, err := startWorkers(l, s, count, duration)
	return s, list, err
}

// runClients runs the process of the clients.
func runClients(l *harness.Env, s *harness.Server, spec clientSpec) (result sent, err error) {
	spec.serverSpec = serverSpec{s.URL, s.Key, serviceName}
	spec.Worker = workerName
	c, err := l.StartPart("clients", spec)
	if err != nil {
		return result, err
	}
	if err := c.ReadJSON(&result); err != nil {
		return result, err
	}
	return result, c.Wait()
}

// A workload is one measurement of T1.
type workload struct {
	kind     string
	size     int
	requests int
}

func (w workload) name() string {
	switch {
	case w.size >= 1_000_000:
		return fmt.Sprintf("%s, %d MB", w.kind, w.size/1_000_000)
	case w.size >= 1000:
		return fmt.Sprintf("%s, %d KB", w.kind, w.size/1000)
	}
	return fmt.Sprintf("%s, %d B", w.kind, w.size)
}

// workloads are those of T1: requests of 4 bytes, and fewer of the larger sizes.
func workloads(l *harness.Env) []workload {
	list := []workload{
		{session.Interactive, 4, l.Size(1_000_000, 800)},
		{session.Durable, 4, l.Size(100_000, 800)},
	}
	for _, size := range []int{100, 1000, 10_000, 100_000, 1_000_000} {
		list = append(list, workload{session.Interactive, size, max(clients, min(l.Size(200_000, 800), int(512e6*min(1, l.Scale))/size))})
	}
	return append(list, workload{session.Durable, 1000, l.Size(50_000, 800)})
}

// usedBy returns the CPU time of processes.
func usedBy(list []*harness.Process) (sum time.Duration) {
	for _, c := range list {
		sum += c.Used().CPU
	}
	return sum
}

// RunThroughput is T1: how many requests per second go through a session.
func RunThroughput(l *harness.Env, r *report.Record) error {
	s, workers, err := start(l, "T1", instances, 0)
	if err != nil {
		return err
	}
	r.Unit = "requests/s"
	r.Params["clients"], r.Params["instances"], r.Params["bytes"] = clients, instances, 4
	if l.Worker != "" {
		r.Params["worker"] = l.Worker
	}
	if err := waitForInstances(l, s, instances); err != nil {
		return err
	}
	var w report.Checks
	limits := map[int]limit{}
	cpu := "CPU time of all processes for a request and its response:"
	for i, load := range workloads(l) {
		n := load.requests / clients * clients
		if limits[load.size].rate == 0 {
			if limits[load.size], err = rawNATS(l, clients, n, load.size); err != nil {
				return err
			}
		}
		window, before := s.OpenWindow(nil), usedBy(workers)
		result, err := runClients(l, s, clientSpec{Kind: load.kind, Clients: clients, Requests: n, Size: load.size})
		if err != nil {
			return s.WithLog(err)
		}
		used := window.Close()
		all := report.MicrosPer(used.Server+result.CPU+usedBy(workers)-before, n)
		cpu += fmt.Sprintf(" %s %.2f us (NATS %.2f us);", load.name(), all, limits[load.size].cpu)
		rate := float64(n) / result.Total.Seconds()
		w.Require(result.Responses == int64(n) && result.Faults == 0, "%s: %d of %d responses arrived, %d of them faults", load.name(), result.Responses, n, result.Faults)
		r.Lost += result.Lost
		r.Duplicates += result.Duplicates
		r.AddPoint(report.Point{At: load.name(), Value: rate, Limit: limits[load.size].rate, CPUMicros: report.MicrosPer(used.Server, n)})
		if i == 0 {
			r.Params["requests"] = n
			r.Value = rate
			r.SetLimit(limits[load.size].rate)
			harness.RecordUsage(r, used)
			r.CPUMicros = report.MicrosPer(used.Server, n)
			r.AddStage("send", result.Send)
			r.AddStage("end to end", result.Total)
			r.Note("the clients take %.2f us of CPU time for a request and its response, all %d together", float64(result.CPU.Microseconds())/float64(n), clients)
		}
	}
	done, err := stopWorkers(l, workers)
	if err != nil {
		return err
	}
	r.Note("%s", strings.TrimSuffix(cpu, ";"))
	if err := compareRabbitMQ(l, r); err != nil {
		return err
	}
	if l.Worker == "" {
		r.Note("the instances have run %s tasks", report.Thousands(done.Tasks))
	}
	r.Note("value: from the first request until the last client has all responses and is closed; the limit is raw NATS request/reply over TCP with a server, a requester and a responder in separate processes, as many connections and requests of the same size, at most %d requests at a time on each connection", natsMost)
	return w.Err()
}

// RunLatency is T2: the latency of serial requests of one client in a session that was idle.
func RunLatency(l *harness.Env, r *report.Record) error {
	s, workers, err := start(l, "T2", 1, 0)
	if err != nil {
		return err
	}
	r.Unit = "ms"
	idle := time.Duration(float64(20*time.Second) * min(1, l.Scale))
	n := l.Size(1000, 15)
	r.Params["requests"], r.Params["clients"], r.Params["instances"] = n, 1, 1
	for _, kind := range []string{session.Interactive, session.Durable} {
		result, err := runClients(l, s, clientSpec{Kind: kind, Clients: 1, Requests: n, Size: 4, Serial: true, Idle: idle})
		if err != nil {
			return s.WithLog(err)
		}
		p99 := report.Millis(result.Latencies[len(result.Latencies)*99/100])
		p50 := report.Millis(result.Latencies[len(result.Latencies)/2])
		r.AddPoint(report.Point{At: kind, Value: report.Millis(result.First), P50Millis: p50, P99Millis: p99})
		if kind == session.Interactive {
			r.Value, r.P50Millis, r.P99Millis = report.Millis(result.First), p50, p99
		}
	}
	r.Note("value: from the first request after %s without any until its response; then each request follows the response to the one before", idle)
	_, err = stopWorkers(l, workers)
	return err
}

// RunEfficiency is T3: the share of their time that the instances spend on requests.
func RunEfficiency(l *harness.Env, r *report.Record) error {
	duration := max(20*time.Millisecond, time.Duration(float64(3*time.Second)*min(1, l.Scale)))
	r.Unit = "%"
	r.Params["instances"], r.Params["requests"], r.Params["ms"] = hosts, 20*hosts, duration.Milliseconds()
	var w report.Checks
	for _, kind := range []string{session.Interactive, session.Durable} {
		s, workers, err := start(l, "T3-"+kind, hosts, duration)
		if err != nil {
			return err
		}
		if err := waitForInstances(l, s, hosts); err != nil {
			return err
		}
		result, err := runClients(l, s, clientSpec{Kind: kind, Clients: 1, Requests: 20 * hosts, Size: 4})
		if err != nil {
			return s.WithLog(err)
		}
		done, err := stopWorkers(l, workers)
		if err != nil {
			return err
		}
		efficiency := 100 * float64(done.Busy) / float64(done.Last-done.First) / hosts
		w.Require(result.Responses == 20*hosts && done.Tasks == 20*hosts, "%s: %d responses from %d tasks arrived instead of %d", kind, result.Responses, done.Tasks, 20*hosts)
		r.Lost += result.Lost
		r.Duplicates += result.Duplicates
		r.AddPoint(report.Point{At: kind, Value: efficiency})
		if kind == session.Interactive {
			r.Value = efficiency
		}
		if err := s.Stop(); err != nil {
			return err
		}
	}
	r.Note("value: the sum of the durations of all tasks, divided by the time from the start of the first one to the end of the last one and by the %d instances, which run one task at a time", hosts)
	return w.Err()
}

// waitForInstances waits until all instances are connected.
func waitForInstances(l *harness.Env, s *harness.Server, count int) error {
	ctx, cancel := context.WithTimeout(l.Ctx, time.Minute)
	defer cancel()
	for {
		var list struct {
			Workers []struct {
				Instances []struct{} `json:"instances"`
			} `json:"workers"`
		}
		if _, err := s.API.Call(ctx, "GET", "/v1/workers", nil, nil, &list); err != nil {
			return err
		}
		if len(list.Workers) == 1 && len(list.Workers[0].Instances) == count {
			return nil
		}
		if err := harness.Pause(ctx, 5*time.Millisecond); err != nil {
			return s.WithLog(fmt.Errorf("not all of the %d instances connect: %w", count, err))
		}
	}
}
