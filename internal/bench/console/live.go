package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

const (
	viewers      = 10          // browsers that show the page Now
	rest         = time.Minute // of each measurement at rest, at full size
	ratesEvery   = time.Minute // between two requests of the plots, as the page makes them
	shortestRest = time.Second
)

// RunLive is W2.
func RunLive(l *harness.Env, r *report.Record) error {
	n := l.Size(1_000_000, 1000)
	r.Unit = "mails/s"
	r.Params["subscriptions"], r.Params["viewers"] = n, viewers
	lines, err := l.NotifyPeople(n)
	if err != nil {
		return err
	}
	var w report.Checks
	var v *viewing
	b, p, sum, err := l.SendBroadcast(harness.BroadcastPlan{Data: "W2", Lines: lines, Subscriptions: n, Retry: "1s",
		Prepare: func(s *harness.Server) error {
			without, err := restingCPU(s)
			if err != nil {
				return err
			}
			v = startViewing(s)
			if err := v.await(l.Ctx); err != nil {
				return errors.Join(err, v.end())
			}
			with, err := restingCPU(s)
			r.Note("at rest, the server takes %.2f %% of one core, and %.2f %% with %d viewers", without, with, viewers)
			return err
		}}, r, &w)
	if v != nil {
		err = errors.Join(err, v.end())
	}
	if err != nil {
		return err
	}
	b.AddStagesTo(r)
	r.Value = float64(n) / b.Durable().Seconds()
	harness.RecordUsage(r, b.WindowUsage)
	r.RSSMiB, r.CPUMicros = b.WholePeakMiB, report.MicrosPer(b.Server, n)
	r.Note("the viewers got %d states", v.states.Load())
	w.Require(b.Counts[fanfare.Accepted] == int64(n), "%d of %d deliveries are accepted", b.Counts[fanfare.Accepted], n)
	harness.CheckSink(r, p, sum, n, &w)
	return w.Err()
}

// restingCPU returns the share of one core that the server takes, in percent.
func restingCPU(s *harness.Server) (float64, error) {
	length := max(shortestRest, time.Duration(float64(rest)*min(1, s.Env.Scale)))
	before := s.Used()
	err := harness.Pause(s.Env.Ctx, length)
	return 100 * s.Used().CPUSince(before).Seconds() / length.Seconds(), err
}

// viewing are viewers that make the requests of the page Now.
type viewing struct {
	stop   context.CancelFunc
	ended  sync.WaitGroup
	states atomic.Int64

	mu  sync.Mutex
	err error // the first one
}

func startViewing(s *harness.Server) *viewing {
	ctx, stop := context.WithCancel(s.Env.Ctx)
	v := &viewing{stop: stop}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2 * viewers, ResponseHeaderTimeout: time.Minute}}
	for range viewers {
		v.ended.Go(func() { v.follow(ctx, s, client) })
	}
	return v
}

// await waits until each viewer has a state.
func (v *viewing) await(ctx context.Context) error {
	var still harness.StallDetector
	for v.states.Load() < viewers {
		v.mu.Lock()
		err := v.err
		v.mu.Unlock()
		if err != nil {
			return err
		}
		if err := still.Check(v.states.Load()); err != nil {
			return err
		}
		if err := harness.Pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (v *viewing) end() error {
	v.stop()
	v.ended.Wait()
	return v.err
}

// follow reads the stream of the status, and the plots from time to time.
func (v *viewing) follow(ctx context.Context, s *harness.Server, client *http.Client) {
	get := func(path string) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+s.Key)
		response, err := client.Do(request)
		if err == nil && response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
			err = fmt.Errorf("%s: %s", path, response.Status)
		}
		return response, err
	}
	err := func() error {
		var plotted time.Time
		stream, err := get("/v1/live")
		if err != nil {
			return err
		}
		defer func() { _ = stream.Body.Close() }()
		lines := bufio.NewScanner(stream.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data:") {
				v.states.Add(1)
			}
			if time.Since(plotted) < ratesEvery {
				continue
			}
			plotted = time.Now()
			plots, err := get("/v1/rates?step=5m")
			if err != nil {
				return err
			}
			if err := plots.Body.Close(); err != nil {
				return err
			}
		}
		return lines.Err()
	}()
	if err != nil && ctx.Err() == nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.err == nil {
			v.err = err
		}
	}
}
