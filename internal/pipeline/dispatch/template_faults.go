package dispatch

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/clock"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/render"
)

// TemplateFaults counts, since the start of the server, the recipients for whom templates failed,
// and the variables that events lacked and no schema declares. It stores the names of templates
// and positions in them, but no values and no recipients.
type TemplateFaults struct {
	registry *registry.Registry
	clock    clock.Clock
	logger   *slog.Logger

	mu     sync.Mutex
	counts map[templateFault]*faultCount
}

// templateFault is a place in a version of a template.
type templateFault struct {
	service, template string
	version           int
	at                string // the place of a failure, or the name of a variable
	absent            bool   // at is a variable that an event lacked
}

type faultCount struct {
	recipients  int64
	first, last time.Time
}

// maxTemplateFaults limits the number of counted positions. The traces of deliveries show the others.
const maxTemplateFaults = 200

func newTemplateFaults(r *registry.Registry, clock clock.Clock, logger *slog.Logger) *TemplateFaults {
	return &TemplateFaults{registry: r, clock: clock, logger: logger, counts: map[templateFault]*faultCount{}}
}

// count adds recipients to a fault. It returns their total, and whether to log it: at 1,
// 10, 100 and so on.
func (f *TemplateFaults) count(of templateFault, recipients int64) (total int64, log bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.counts[of]
	if known == nil {
		if len(f.counts) >= maxTemplateFaults {
			return recipients, false
		}
		known = &faultCount{first: f.clock.Now()}
		f.counts[of] = known
	}
	before := known.recipients
	known.recipients, known.last = before+recipients, f.clock.Now()
	for mark := int64(1); mark <= known.recipients; mark *= 10 {
		log = log || before < mark
	}
	return known.recipients, log
}

// failed counts recipients for whom a template failed.
func (f *TemplateFaults) failed(source *catalog.TemplateSource, fault render.Fault, recipients int64) {
	of := templateFault{source.Service, source.Name, source.Version, fault.String(), false}
	if total, log := f.count(of, recipients); log {
		f.logger.Warn("cannot render a template for some recipients", "service", of.service, "template", of.name(), "at", of.at, "recipients", total)
	}
}

// absent counts an event that lacked a variable. A variable is logged once.
func (f *TemplateFaults) absent(source *catalog.TemplateSource, variable string) {
	of := templateFault{source.Service, source.Name, source.Version, variable, true}
	f.mu.Lock()
	known := f.counts[of] != nil
	f.mu.Unlock()
	if known {
		return
	}
	if total, log := f.count(of, 1); log && total == 1 {
		f.logger.Warn("a template uses a variable that is missing from the event and renders as empty; add a schema to the topic to detect misspelled names", "service", of.service, "template", of.name(), "variable", variable)
	}
}

func (f *templateFault) name() string { return fmt.Sprintf("%s@%d", f.template, f.version) }

// Status lists the faults, the most frequent first.
func (f *TemplateFaults) Status() (list []wire.TemplateFault) {
	f.mu.Lock()
	for of, count := range f.counts {
		one := wire.TemplateFault{Service: of.service, Template: of.template, Version: of.version, Since: count.first, Last: count.last}
		if of.absent {
			one.Absent = of.at
		} else {
			one.At, one.Recipients = of.at, count.recipients
		}
		list = append(list, one)
	}
	f.mu.Unlock()
	for i := range list {
		published, err := f.registry.Configuration().PickVersion(list[i].Service, list[i].Template, 0, false)
		list[i].Replaced = err != nil || published.Version != list[i].Version
	}
	slices.SortFunc(list, func(a, b wire.TemplateFault) int {
		return cmp.Or(cmp.Compare(b.Recipients, a.Recipients), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Template, b.Template), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Absent+a.At, b.Absent+b.At))
	})
	return list
}

// absentFrom returns what is called for a variable that an event lacks; nil if all topics of the
// mailing have a schema.
func (l *loader) absentFrom(m *mailing, source *catalog.TemplateSource) func(variable string) {
	if m.event.Direct != nil { // it was refused if it lacked one
		return nil
	}
	for _, topic := range l.topicsOf(m) {
		if len(topic.Schema) == 0 {
			return func(variable string) { l.faults.absent(source, variable) }
		}
	}
	return nil
}
