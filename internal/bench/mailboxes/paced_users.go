package mailboxes

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// usersSpec is what the process of the users is told.
type usersSpec struct {
	Address            string
	People             string // file with the users as JSON: they are too many for an argument
	Duration           time.Duration
	MinThink, MaxThink time.Duration // between two actions of a user
	Seed               uint64
}

// usersResult is the result of the process of the users.
type usersResult struct {
	Millis  map[string][]float64 // by action
	Failed  []string             // what went wrong, at most a few
	Logins  int
	Elapsed time.Duration
}

// An action is what a user does after a think time.
type action struct {
	name  string
	share int // percent
}

// A mailProgram is the program of one user, after its login.
type mailProgram interface {
	// do returns for how long it waited on purpose. measured is false if it sent nothing.
	do(ctx context.Context, name string) (waited time.Duration, measured bool, err error)
	close() error
}

// A userStep is a number of users with the number of messages that each has at first.
type userStep struct {
	users, messages int
	dovecot         bool // the same users also use Dovecot, if it is installed
}

// A userExperiment is an experiment with users who act after a think time.
type userExperiment struct {
	data               string // name of the data directory
	part               string // that runs the users
	unit               string
	steps              []userStep
	seconds            int // of each step
	minThink, maxThink time.Duration
	address            func(s *mailServer) string // at which the users log in
}

func (e *userExperiment) run(l *harness.Env, r *report.Record) error {
	r.Unit = e.unit
	var w report.Checks
	var at string
	for _, step := range e.steps {
		at = fmt.Sprintf("%d users", step.users)
		n, messages := l.Size(step.users, 10), l.Size(step.messages, 10)
		if err := e.runStep(l, r, at, n, messages, &w); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if missing := lookDovecot(); step.dovecot && missing != nil {
			r.Note("%v", missing)
		} else if step.dovecot {
			if err := e.runDovecot(l, r, at+" of Dovecot", n, messages, &w); err != nil {
				return fmt.Errorf("%s of Dovecot: %w", at, err)
			}
		}
	}
	p99 := r.P99Millis // the highest
	if err := r.UsePoint(at); err != nil {
		return err
	}
	r.P99Millis = max(r.P99Millis, p99)
	return report.FirstError(nil, w)
}

// runDovecot measures the same users with Dovecot.
func (e *userExperiment) runDovecot(l *harness.Env, r *report.Record, at string, n, messages int, w *report.Checks) error {
	d, err := startDovecot(l, n)
	if err != nil {
		return err
	}
	if err := d.fill(l, messages); err != nil {
		return d.WithLog(err)
	}
	used := d.used()
	got, clients, err := e.runPart(l, d.imap, d.users)
	if err != nil {
		return d.WithLog(err)
	}
	usage := used()
	got.check(at, n, w)
	p := got.point(at)
	r.AddPoint(p)
	actions := max(1, p.Value*got.Elapsed.Seconds())
	r.Note("%s: %d with %d messages each (sdbox); p50 %.2f ms, p99 %.2f ms (p99 by action: %s); %.0f MiB of its processes at the end (PSS); CPU with the logins, for each action: Dovecot %.0f us, clients %.0f us", at, n, messages,
		p.P50Millis, p.P99Millis, got.slowest(), usage.memoryMiB, float64(usage.cpu.Microseconds())/actions, clients.CPUSeconds*1e6/actions)
	return d.Stop()
}

// runPart runs the users in a process of their own.
func (e *userExperiment) runPart(l *harness.Env, address string, users []mailUser) (got usersResult, clients report.Record, err error) {
	people := l.File("users.json")
	if err := writeJSON(people, users); err != nil {
		return got, clients, err
	}
	// With fewer users, each acts more often, so that a short run has some actions of each.
	faster := min(1, max(0.05, l.Scale))
	spec := usersSpec{Address: address, People: people, Duration: max(2*time.Second, time.Duration(float64(e.seconds)*l.Scale*float64(time.Second))), Seed: l.Seed,
		MinThink: time.Duration(float64(e.minThink) * faster), MaxThink: time.Duration(float64(e.maxThink) * faster)}
	err = l.RunPart(&clients, e.part, spec, &got)
	return got, clients, err
}

// check requires that all users logged in and nothing failed.
func (u *usersResult) check(at string, n int, w *report.Checks) {
	w.Require(len(u.Failed) == 0, "%s: %s", at, strings.Join(u.Failed, "; "))
	w.Require(u.Logins == n, "%s: %d of %d logged in", at, u.Logins, n)
}

// runStep measures one number of users on a new server.
func (e *userExperiment) runStep(l *harness.Env, r *report.Record, at string, n, messages int, w *report.Checks) error {
	s, users, err := startMailServer(l, fmt.Sprint(e.data, "-", n, "-", messages), n)
	if err != nil {
		return err
	}
	filling := time.Now()
	if err := seedMailboxes(l, s.lmtp, users, messages); err != nil {
		return err
	}
	filled := time.Since(filling)
	s.ResetPeak()
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	window := s.OpenWindow(nil)
	got, clients, err := e.runPart(l, e.address(s), users)
	if err != nil {
		return s.WithLog(err)
	}
	used := window.Close()
	if err := s.ToggleProfile(); err != nil {
		return err
	}
	got.check(at, n, w)
	p := got.point(at)
	r.AddPoint(p)
	r.P99Millis = max(r.P99Millis, p.P99Millis)
	r.RSSMiB = max(r.RSSMiB, used.PeakMiB)
	r.CPUSeconds += used.Server.Seconds()
	actions := max(1, p.Value*got.Elapsed.Seconds())
	r.Note("%s: %d with %d messages each, stored once for all in %.0f s; p50 %.2f ms, p99 %.2f ms (p99 by action: %s); server %.0f MiB at most; CPU with the logins, for each action: server %.0f us, clients %.0f us", at, n, messages, filled.Seconds(),
		p.P50Millis, p.P99Millis, got.slowest(), used.PeakMiB, float64(used.Server.Microseconds())/actions, clients.CPUSeconds*1e6/actions)
	r.Others = max(r.Others, clients.Others)
	return s.Stop()
}

// point returns the rate and the latencies of all actions.
func (u *usersResult) point(at string) report.Point {
	var all []float64
	for _, list := range u.Millis {
		all = append(all, list...)
	}
	slices.Sort(all)
	return report.Point{At: at, Value: float64(len(all)) / u.Elapsed.Seconds(), P50Millis: report.Percentile(all, 50), P99Millis: report.Percentile(all, 99)}
}

// slowest lists the 99th percentile of each action.
func (u *usersResult) slowest() string {
	var names, list []string
	for name := range u.Millis {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		slices.Sort(u.Millis[name])
		list = append(list, fmt.Sprintf("%s %.2f", name, report.Percentile(u.Millis[name], 99)))
	}
	return strings.Join(list, ", ")
}

func writeJSON(path string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// loginsAtOnce is the number of users who log in at the same time.
const loginsAtOnce = 8

// runUsers logs all users in, and lets each act after each think time.
func runUsers(ctx context.Context, spec usersSpec, mix []action, open func(ctx context.Context, u mailUser, random *rand.Rand) (mailProgram, error)) (result usersResult, err error) {
	text, err := os.ReadFile(spec.People)
	if err != nil {
		return result, err
	}
	var users []mailUser
	if err := json.Unmarshal(text, &users); err != nil {
		return result, err
	}
	programs := make([]mailProgram, len(users))
	randoms := make([]*rand.Rand, len(users))
	logins, loginCtx := errgroup.WithContext(ctx)
	logins.SetLimit(loginsAtOnce)
	for i, u := range users {
		randoms[i] = rand.New(rand.NewPCG(spec.Seed, uint64(i)))
		logins.Go(func() (err error) {
			if programs[i], err = open(loginCtx, u, randoms[i]); err != nil {
				return fmt.Errorf("%s: %w", u.User, err)
			}
			return nil
		})
	}
	if err := logins.Wait(); err != nil {
		return result, err
	}
	result = usersResult{Millis: map[string][]float64{}, Logins: len(users)}
	started := time.Now()
	end := started.Add(spec.Duration)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i, p := range programs {
		wg.Go(func() {
			err := act(ctx, spec, end, p, mix, randoms[i], func(name string, took time.Duration) {
				mu.Lock()
				defer mu.Unlock()
				result.Millis[name] = append(result.Millis[name], report.Millis(took))
			})
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				if len(result.Failed) < 5 {
					result.Failed = append(result.Failed, err.Error())
				}
			}
		})
	}
	wg.Wait()
	result.Elapsed = time.Since(started)
	return result, nil
}

// act is one user until the end.
func act(ctx context.Context, spec usersSpec, end time.Time, p mailProgram, mix []action, random *rand.Rand, took func(name string, d time.Duration)) error {
	for {
		think := spec.MinThink + time.Duration(random.Int64N(int64(spec.MaxThink-spec.MinThink)))
		if time.Now().Add(think).After(end) {
			return p.close()
		}
		if err := harness.Pause(ctx, think); err != nil {
			return err
		}
		name := choose(mix, random)
		started := time.Now()
		waited, measured, err := p.do(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if measured {
			took(name, time.Since(started)-waited)
		}
	}
}

// choose draws an action by the shares.
func choose(mix []action, random *rand.Rand) string {
	at := random.IntN(100)
	for _, a := range mix {
		if at -= a.share; at < 0 {
			return a.name
		}
	}
	return mix[len(mix)-1].name
}
