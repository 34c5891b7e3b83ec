package sessions

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// The workload of T4.
const (
	enduranceTime = time.Hour
	enduranceRate = 20_000 // requests per second of the steady client
	slowRate      = 100    // responses per second that the slow client reads
	enduranceSize = 100    // bytes of each request
	mostPhases    = 64     // the slow client is there in every second one
	leastPhase    = time.Second
	leastPhases   = 8 // and a multiple of it, so that each quarter has as many phases of both kinds
	sampleEvery   = time.Second
	leastSample   = 20 * time.Millisecond
)

// phasesOf returns the number of phases of a run at a scale, and their duration.
func phasesOf(scale float64) (count int, phase time.Duration) {
	whole := time.Duration(float64(enduranceTime) * scale)
	phase = max(leastPhase, whole/mostPhases)
	count = max(leastPhases, int(whole/phase))
	return count - count%leastPhases, phase
}

// RunEndurance is T4: the memory of the server at a steady rate, and the latency of a client beside one that reads slowly.
func RunEndurance(l *harness.Env, r *report.Record) error {
	s, workers, err := start(l, "T4", instances, 0)
	if err != nil {
		return err
	}
	if err := waitForInstances(l, s, instances); err != nil {
		return err
	}
	count, phase := phasesOf(l.Scale)
	r.Unit = "MiB"
	r.Params["requests/s"], r.Params["bytes"], r.Params["seconds"], r.Params["instances"] = enduranceRate, enduranceSize, (time.Duration(count) * phase).Seconds(), instances
	at := serverSpec{s.URL, s.Key, serviceName}
	begin := time.Now().Add(time.Second)
	steady, err := l.StartPart("steady", pacedSpec{serverSpec: at, Worker: workerName, Start: begin, Rate: enduranceRate, Duration: time.Duration(count) * phase, Phase: phase, Size: enduranceSize})
	if err != nil {
		return err
	}
	if err := harness.Pause(l.Ctx, time.Until(begin)); err != nil {
		return err
	}
	window := s.OpenWindow(nil)
	memory := make([][]float64, count) // by phase
	var others []string
	var slow slowly
	bar := l.Progress("T4", int64(count))
	defer bar.End()
	for i := range count {
		bar.Set(int64(i))
		until := begin.Add(time.Duration(i+1) * phase)
		var reader *harness.Process
		if i%2 == 1 {
			if reader, err = l.StartPart("slow", slowSpec{at, workerName, slowRate, enduranceSize}); err != nil {
				return err
			}
		}
		if i == count/2 || i == count-1 {
			others = append(others, fmt.Sprintf("%.0f and %.0f", steady.Memory("VmRSS"), workers[0].Memory("VmRSS")))
		}
		if memory[i], err = sampleMemory(l, s, slices.Concat(workers, []*harness.Process{steady}), phase, until); err != nil {
			return err
		}
		if reader == nil {
			continue
		}
		one, err := endSlow(reader)
		if err != nil {
			return s.WithLog(err)
		}
		slow.Sent, slow.Read, slow.Open, slow.Blocked = slow.Sent+one.Sent, slow.Read+one.Read, slow.Open+one.Open, slow.Blocked+one.Blocked
	}
	used := window.Close()
	var got paced
	if err := steady.ReadJSON(&got); err != nil {
		return err
	}
	if err := steady.Wait(); err != nil {
		return err
	}
	done, err := stopWorkers(l, workers)
	if err != nil {
		return err
	}
	harness.RecordUsage(r, used)
	r.CPUMicros = report.MicrosPer(used.Server, int(got.Responses+slow.Read))
	recordMemory(r, memory, phase)
	recordNeighbours(r, &got)
	r.Note("MiB of the client with the steady rate and of the first instance: %s at half time, %s at the end", others[0], others[1])
	r.Lost, r.Duplicates = got.Lost, got.Duplicates
	r.Note("the slow client, which reads %d responses/s, sent %s requests in %d phases, received %s responses and could not send in %.0f %% of the %v in which it was connected",
		slowRate, report.Thousands(slow.Sent), count/2, report.Thousands(slow.Read), 100*float64(slow.Blocked)/float64(slow.Open), slow.Open.Round(time.Second))
	r.Note("the instances ran %s tasks", report.Thousands(done.Tasks))
	var w report.Checks
	want := int64(enduranceRate * (phase * time.Duration(count)).Seconds())
	w.Require(got.Sent == want && got.Responses == want && got.Faults == 0, "%d of %d requests have a response, %d of them faults", got.Responses, want, got.Faults)
	w.Require(slow.Blocked >= slow.Open/3 || l.Scale < 1, "the slow client was stopped for only %v of the %v in which it was connected", slow.Blocked, slow.Open)
	return w.Err()
}

// sampleMemory measures the resident memory of the server until a time, and once if that has passed, while the other processes must
// run, too.
func sampleMemory(l *harness.Env, s *harness.Server, others []*harness.Process, phase time.Duration, until time.Time) (list []float64, err error) {
	step := min(sampleEvery, max(leastSample, phase/60))
	for len(list) == 0 || time.Until(until) > 0 {
		m := s.Memory("VmRSS")
		if m == 0 {
			return nil, s.WithLog(errors.New("the server has ended"))
		}
		for _, c := range others {
			if c.Memory("VmRSS") == 0 {
				return nil, c.WithLog(errors.New("the process has ended"))
			}
		}
		list = append(list, m)
		if err := harness.Pause(l.Ctx, min(step, time.Until(until))); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// endSlow ends the slow reader.
func endSlow(c *harness.Process) (result slowly, err error) {
	if err := c.CloseInput(); err != nil {
		return result, err
	}
	if err := c.ReadJSON(&result); err != nil {
		return result, err
	}
	return result, c.Wait()
}
