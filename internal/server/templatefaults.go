package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/control"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/deliveries"
	"fanfare.dev/fanfare/internal/store/retry"
)

// templateFaults counts, since the start of the server, for how many people templates
// failed and which variables no event had of which no schema says that there are any.
// It keeps names and places of templates alone, no value and no person.
type templateFaults struct {
	registry *registry.Registry
	clock    clock.Clock
	logger   *slog.Logger

	mu     sync.Mutex
	counts map[templateFault]*faultCount
}

// A templateFault is a place in a version of a template.
type templateFault struct {
	service, template string
	version           int
	at                string // the place of a failure, or the variable that was absent
	absent            bool
}

type faultCount struct {
	people      int64
	first, last time.Time
}

// maxTemplateFaults bounds how many places are counted: further ones are in the
// traces of those whom they concern.
const maxTemplateFaults = 200

func newTemplateFaults(r *registry.Registry, clock clock.Clock, logger *slog.Logger) *templateFaults {
	return &templateFaults{registry: r, clock: clock, logger: logger, counts: map[templateFault]*faultCount{}}
}

// count adds people to a fault, and logs it when there are 1, 10, 100 and so on. It
// returns whether the fault is new.
func (f *templateFaults) count(of templateFault, people int64) (total int64, tell bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.counts[of]
	if known == nil {
		if len(f.counts) >= maxTemplateFaults {
			return people, false
		}
		known = &faultCount{first: f.clock.Now()}
		f.counts[of] = known
	}
	before := known.people
	known.people, known.last = before+people, f.clock.Now()
	for mark := int64(1); mark <= known.people; mark *= 10 {
		tell = tell || before < mark
	}
	return known.people, tell
}

// failed notes that a template failed for people.
func (f *templateFaults) failed(source *registry.TemplateSource, fault render.Fault, people int64) {
	of := templateFault{source.Service, source.Name, source.Version, fault.String(), false}
	if total, tell := f.count(of, people); tell {
		f.logger.Warn("a template fails for recipients", "service", of.service, "template", of.name(), "at", of.at, "recipients", total)
	}
}

// absent notes that an event lacked a variable. It is logged once.
func (f *templateFaults) absent(source *registry.TemplateSource, variable string) {
	of := templateFault{source.Service, source.Name, source.Version, variable, true}
	f.mu.Lock()
	known := f.counts[of] != nil
	f.mu.Unlock()
	if known {
		return
	}
	if total, tell := f.count(of, 1); tell && total == 1 {
		f.logger.Warn("a template reads a variable that an event lacks, and it is left empty: give the topic a schema to have misspelled names found", "service", of.service, "template", of.name(), "variable", variable)
	}
}

func (f *templateFault) name() string { return fmt.Sprintf("%s@%d", f.template, f.version) }

// status lists what was counted, the most frequent first.
func (f *templateFaults) status() (list []wire.TemplateFault) {
	f.mu.Lock()
	for of, count := range f.counts {
		one := wire.TemplateFault{Service: of.service, Template: of.template, Version: of.version, Since: count.first, Last: count.last}
		if of.absent {
			one.Absent = of.at
		} else {
			one.At, one.Recipients = of.at, count.people
		}
		list = append(list, one)
	}
	f.mu.Unlock()
	for i := range list {
		current, err := f.registry.Configuration().PickVersion(list[i].Service, list[i].Template, 0, false)
		list[i].Replaced = err != nil || current.Version != list[i].Version
	}
	slices.SortFunc(list, func(a, b wire.TemplateFault) int {
		return cmp.Or(cmp.Compare(b.Recipients, a.Recipients), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Absent+a.At, b.Absent+b.At))
	})
	return list
}

// absentFrom returns what is told of variables that no schema knows: nothing where all
// topics of a mailing have one.
func (l *loader) absentFrom(m *mailing, source *registry.TemplateSource) func(variable string) {
	if m.posted.Direct != nil { // which was refused with what it lacked
		return nil
	}
	for _, topic := range l.topicsOf(m) {
		if len(topic.Schema) == 0 {
			return func(variable string) { l.faults.absent(source, variable) }
		}
	}
	return nil
}

// current is the published version of a template of which another is pinned; false
// where the pinned one is published, or none is.
func currentVersion(r *registry.Registry, pinned uint32) (now *registry.TemplateVersion, ok bool) {
	source, known := r.Template(pinned)
	if !known {
		return nil, false
	}
	now, err := r.Configuration().PickVersion(source.Service, source.Name, 0, false)
	return now, err == nil && now.Number != pinned
}

// mendEvery is how often broadcasts that a template paused are looked at.
const mendEvery = time.Second

// mending resumes broadcasts that were paused because of a template once another
// version of it is published, also one that was published before the start.
type mending struct {
	switches *control.Switches
	store    *deliveries.Store
	registry *registry.Registry
	logger   *slog.Logger

	services map[string]string // of broadcasts that were looked at
}

func (m *mending) run(ctx context.Context) {
	for retry.Sleep(ctx, mendEvery) == nil {
		m.look(ctx)
	}
}

func (m *mending) look(ctx context.Context) {
	paused := m.switches.PausedBroadcasts()
	if m.services == nil || len(paused) == 0 {
		m.services = map[string]string{}
	}
	for _, p := range paused {
		pinned, ok := pausedTemplate(p.Reason)
		if !ok {
			continue
		}
		now, err := m.current(ctx, p, pinned.template)
		if err != nil || now.Version == pinned.version {
			continue
		}
		failpoint.Hit("before-template-resume")
		err = m.switches.Resume(ctx, p.Scope, fmt.Sprintf("template %s@%d is published", pinned.template, now.Version))
		if err != nil {
			m.logger.Log(ctx, retry.LogLevel(err), "a broadcast whose template was replaced could not be resumed, it is tried again", "event", p.Scope.Name, "error", err)
			continue
		}
		m.logger.Info("a broadcast goes on with another version of its template", "event", p.Scope.Name, "template", pinned.template, "version", now.Version)
	}
}

// current is the published version of the template of a broadcast's service.
func (m *mending) current(ctx context.Context, p registry.PausedScope, template string) (*registry.TemplateVersion, error) {
	service, known := m.services[p.Scope.Name]
	if !known {
		ref, _ := fanfare.ParseEventRef(p.Scope.Name)
		b, err := m.store.Broadcast(ctx, ref)
		if err != nil {
			return nil, err
		}
		service = b.Service
		m.services[p.Scope.Name] = service
	}
	return m.registry.Configuration().PickVersion(service, template, 0, false)
}
