package apply

import (
	"maps"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
)

// worker plans the change of a worker. Its command may be set with a key for a single service,
// because the local file of each agent decides what runs on its machine.
func (pl *Plan) worker(name string, spec *document.WorkerSpec) {
	old := pl.Service.Workers[name]
	if spec.Delete {
		if old != nil {
			deleteMember(pl, pl.Service.Workers, catalog.KindWorker, name, old.Number, old.WorkerSettings)
		}
		return
	}
	w := &catalog.Worker{Service: pl.Service.Name, Name: name, WorkerSettings: spec.WorkerSettings}
	if old != nil {
		changed := catalog.FieldChanges(old.WorkerSettings, w.WorkerSettings)
		if len(changed) == 0 {
			return
		}
		w.Number = old.Number
		pl.Diff.Add(catalog.KindWorker, name, "update", changed)
	} else {
		w.Number = pl.workerNumber(name)
		pl.Diff.Add(catalog.KindWorker, name, "create", nil)
	}
	pl.Service.Workers[name], pl.To.Workers[w.Number] = w, w
	pl.addRecord(catalog.KindWorker, w.Number, name, w.WorkerSettings, false)
}

// workerReferences checks the workers that channels, topics and templates name.
func (pl *Plan) workerReferences() {
	check := func(at, name string) {
		if name == "" || pl.Service.Workers[name] != nil {
			return
		}
		if spec := pl.Document.Workers[name]; spec != nil && spec.Delete && !pl.Document.DeleteService {
			pl.fail("", &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("workers", name), Hint: "use another worker there first",
				Message: "worker " + inputerror.Quote(name) + " cannot be deleted: it is used by " + at})
			return
		}
		pl.fail(at, inputerror.Invalid("", inputerror.DidYouMean(name, maps.Keys(pl.Service.Workers), "register it in workers"), "unknown worker %s", inputerror.Quote(name)))
	}
	for _, c := range catalog.SortedValues(pl.Service.Channels) {
		check(inputerror.Pointer("channels", c.Name, "worker"), c.Worker)
	}
	for _, t := range catalog.SortedValues(pl.Service.Topics) {
		check(inputerror.Pointer("topics", t.Name, "filter"), t.Filter)
	}
	for _, t := range catalog.SortedValues(pl.Service.Templates) {
		check(inputerror.Pointer("templates", t.Name, "formatter"), t.Formatter)
	}
}

// workerNumber is the number that the name had before it was deleted, or a new one.
func (pl *Plan) workerNumber(name string) uint32 {
	for number, w := range pl.To.Workers {
		if w.Service == pl.Service.Name && w.Name == name {
			return number
		}
	}
	return nextNumber(maps.Keys(pl.To.Workers))
}
