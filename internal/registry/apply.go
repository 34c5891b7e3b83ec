package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// errMoved says that the configuration changed while a plan was made.
var errMoved = errors.New("registry: the configuration changed meanwhile")

// Plan checks everything in d, dry-runs each template that it names or that a
// topic in it uses, and returns what Apply would change. It changes nothing.
func (r *Registry) Plan(ctx context.Context, d *Document) (Diff, error) {
	pl, err := r.plan(audit.ActorOf(ctx), d)
	if err != nil {
		return Diff{}, err
	}
	err = r.writer.submit(ctx, &job{run: func(w *writer) error {
		if err := pl.checkUse(w); err != nil {
			return err
		}
		for _, t := range pl.defined {
			if err := r.opt.Conditions.CheckDefine(t.key(), t.definition()); err != nil {
				return inputerror.WithPrefix(inputerror.Pointer("topics", t.Name), err)
			}
		}
		return nil
	}})
	if err != nil {
		return Diff{}, d.locate(err)
	}
	return pl.noted(), nil
}

// noted is the difference with what else there is to know.
func (pl *plan) noted() Diff {
	diff := pl.diff
	diff.Notes = slices.Concat(pl.r.rateNotes(pl.doc.Service, pl.doc.Channels), pl.approvalNotes(), pl.draftNotes(), pl.fileNotes(), pl.templateNotes())
	return diff
}

// Apply is Plan, and then makes it so: everything or nothing. Applied again, the
// same document changes nothing and gives an empty Diff. A schema that an active
// filter does not fit, and a rule, topic or channel that goes while there are
// active or paused subscriptions to it, is a Conflict. A schema need not fit paused
// ones: they are refused when they are resumed.
func (r *Registry) Apply(ctx context.Context, d *Document) (Diff, error) {
	pl, err := r.apply(ctx, d, nil)
	if err != nil {
		return Diff{}, err
	}
	return pl.noted(), nil
}

// apply makes a plan and carries it out, and makes another where the
// configuration moved meanwhile. check, if there is one, is asked about the very
// configuration that is then changed.
func (r *Registry) apply(ctx context.Context, d *Document, check func(Configuration) error) (*plan, error) {
	for {
		pl, err := r.plan(audit.ActorOf(ctx), d)
		if check != nil {
			if err := check(Configuration{pl.from}); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		if len(pl.diff.Changes) == 0 {
			return pl, nil
		}
		err = r.writer.submit(ctx, &job{run: func(w *writer) error { return pl.apply(w, audit.ActorOf(ctx)) }})
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, d.locate(err)
		}
		return pl, nil
	}
}

// A plan is what has to be done for a document, on top of one snapshot.
type plan struct {
	r        *Registry
	doc      *Document
	actor    *audit.Actor
	from, to *snapshot
	svc      *service // in to
	diff     Diff
	records  []control.ConfigRecord
	enclosed []control.FileRecord // not kept yet
	defined  []*Topic             // new or changed
	gone     []*Topic             // deleted
	closed   []*Channel           // deleted
	wrong    []*fanfare.Error
}

func (r *Registry) plan(actor *audit.Actor, d *Document) (*plan, error) {
	from := r.config.Load()
	pl := &plan{r: r, doc: d, actor: actor, from: from, to: from.clone(), diff: Diff{Changes: []Change{}}}
	pl.service()
	pl.subscriberSchema()
	if d.deleted {
		pl.dropSubscriberSchema()
		pl.deleteService()
	}
	for _, name := range slices.Sorted(maps.Keys(d.Channels)) {
		pl.channel(name, d.Channels[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Templates)) {
		pl.template(name, d.Templates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Topics)) {
		pl.topic(name, d.Topics[name])
	}
	pl.references()
	if len(pl.wrong) == 0 {
		pl.dryRun()
	}
	if len(pl.wrong) > 0 {
		return pl, d.locate(inputerror.Join(pl.wrong[:min(len(pl.wrong), maxFaults)]))
	}
	return pl, nil
}

// fail notes err, which concerns the member at the pointer.
func (pl *plan) fail(at string, err error) {
	pl.wrong = append(pl.wrong, inputerror.WithPrefix(at, err))
}

func (pl *plan) service() {
	name := pl.doc.Service
	if pl.svc = pl.to.services[name]; pl.svc != nil {
		if changes := pl.settings(); changes != nil {
			pl.diff.add(kindService, name, "update", changes)
			pl.keepService(false)
		}
		return
	}
	if !namePattern.MatchString(name) {
		pl.fail("/service", inputerror.Invalid("", nameHint, "%s is not a name", inputerror.Quote(name)))
	}
	pl.svc = newService(pl.serviceNumber(name), name)
	pl.to.services[name], pl.to.names[pl.svc.number] = pl.svc, name
	pl.settings()
	pl.diff.add(kindService, name, "create", nil)
	pl.keepService(false)
}

// references checks that every template that a topic names is there.
func (pl *plan) references() {
	check := func(at, name string) {
		if spec := pl.doc.Templates[name]; spec != nil {
			if spec.Delete && !pl.doc.deleted {
				pl.fail("", &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("templates", name), Hint: "give the topic another one first",
					Message: "template " + inputerror.Quote(name) + " cannot be deleted: it is needed by " + at})
			}
			return // where it cannot be compiled, that was said
		}
		if name != "" && pl.svc.templates[name] == nil {
			pl.fail(at, inputerror.Invalid("", inputerror.DidYouMean(name, maps.Keys(pl.svc.templates), "the service has no templates"), "unknown template %s", inputerror.Quote(name)))
		}
	}
	for _, t := range sortedValues(pl.svc.topics) {
		at := inputerror.Pointer("topics", t.Name)
		check(at+"/template", t.Template)
		check(at+"/digest/template", t.Digest.Template)
		for i, rule := range t.Rules {
			check(fmt.Sprintf("%s/rules/%d/template", at, i), rule.Template)
		}
	}
}

// dryRun checks each template against each topic that uses it, where the
// document names one of them.
func (pl *plan) dryRun() {
	used := map[string]bool{}
	run := func(t *Topic, name string, params map[string]string) {
		src := pl.sourceOf(name)
		if src == nil {
			return
		}
		used[name] = true
		if pl.doc.Topics[t.Name] == nil && !pl.tries(name) {
			return
		}
		if err := pl.r.opt.DryRunTemplate(src, schemaOf(t), params); err != nil {
			pl.failIn("in topic "+t.Name, err)
		}
	}
	for _, t := range sortedValues(pl.svc.topics) {
		run(t, t.Template, nil)
		for _, rule := range t.Rules {
			if rule.Template != "" {
				run(t, rule.Template, rule.Params)
			} else {
				run(t, t.Template, rule.Params)
			}
		}
	}
	pl.dryRunDigests(used)
	for name := range pl.doc.Templates {
		if src := pl.sourceOf(name); src != nil && !used[name] && pl.tries(name) {
			if err := pl.r.opt.DryRunTemplate(src, nil, nil); err != nil {
				pl.fail("", err)
			}
		}
	}
}

// tries reports whether the document says what the template is, or is going to be.
func (pl *plan) tries(template string) bool {
	spec := pl.doc.Templates[template]
	return spec != nil && spec.does != discards
}

// failIn notes what is wrong with a template where it is used.
func (pl *plan) failIn(place string, err error) {
	e := inputerror.WithPrefix("", err)
	e.Message += " (" + place + ")"
	pl.wrong = append(pl.wrong, e)
}

// schemaOf is a topic's schema; of one that has none: anything.
func schemaOf(t *Topic) json.RawMessage {
	if t.Schema == nil {
		return json.RawMessage("true")
	}
	return t.Schema
}

// checkUse refuses to delete what subscriptions need that have not ended. The
// index knows the active ones.
func (pl *plan) checkUse(w *writer) error {
	var wrong []*fanfare.Error
	for _, t := range pl.gone {
		n := int64(pl.r.opt.Conditions.Len(t.key()))
		for of, paused := range w.pausedUse {
			if of.topic == t.Number {
				n += paused
			}
		}
		if n > 0 {
			wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name), n))
		}
	}
	for _, t := range pl.defined {
		if n := w.waitingUse[t.Number]; n > 0 && t.Digest.IsZero() {
			wrong = append(wrong, t.waitsFor(n))
		}
		for of, paused := range w.pausedUse {
			if of.topic == t.Number && of.rule != 0 && paused > 0 && t.ruleName(of.rule) == "" {
				wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name, "rules"), paused))
			}
		}
	}
	for _, c := range pl.closed {
		if n := w.channelUse[c.Number]; n > 0 {
			wrong = append(wrong, inUse(inputerror.Pointer("channels", c.Name), n))
		}
	}
	return inputerror.Join(wrong)
}

func inUse(at string, subscriptions int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Hint: "end them first",
		Message: fmt.Sprintf("cannot be deleted: active or paused subscriptions need it, %d of them", subscriptions)}
}

// apply runs in the writer.
func (pl *plan) apply(w *writer, actor *audit.Actor) error {
	r := pl.r
	if r.config.Load() != pl.from {
		return errMoved
	}
	if err := pl.checkUse(w); err != nil {
		return err
	}
	for i, t := range pl.defined {
		if err := r.opt.Conditions.Define(t.key(), t.definition()); err != nil {
			pl.restore(i)
			return inputerror.WithPrefix(inputerror.Pointer("topics", t.Name), err)
		}
	}
	b := control.Batch{Config: pl.records, Files: pl.enclosed}
	keys := pl.orphans(&b)
	for _, c := range pl.diff.Changes {
		b.AddAudit(actor, audit.Operation{Service: pl.svc.name, Action: c.Action, Kind: c.Kind, Name: c.Name}, &audit.Detail{Fields: shortened(c)})
	}
	if err := r.commit(&b); err != nil {
		pl.restore(len(pl.defined))
		return err
	}
	r.config.Store(pl.to)
	for _, k := range keys {
		r.keyring.remove(k.number)
	}
	return nil
}

// restore gives the first n changed topics back what they said before. A new
// one stays in the index, where nobody asks for it.
func (pl *plan) restore(n int) {
	for _, t := range pl.defined[:n] {
		if old := pl.from.topics[t.Number]; old != nil {
			// It was good a moment ago, for the same subscriptions.
			_ = pl.r.opt.Conditions.Define(old.key(), old.definition())
		}
	}
}

// locate adds the line and column of the member that an error points at, where
// it has none of its own.
func (d *Document) locate(err error) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	for _, part := range append([]*fanfare.Error{e}, e.Details...) {
		if rest, ok := within(part.Pointer, d.ruleAt); ok {
			part.Pointer = d.root + rest
		}
		if part.Line == 0 {
			pos := d.position(part.Pointer)
			part.Line, part.Column = pos.line, pos.column
		}
		if rest, ok := within(part.Pointer, d.root); ok {
			part.Pointer = rest
		}
	}
	return e
}

// position is that of the member at the pointer, or of the next one around it
// that is known; zero without any.
func (d *Document) position(at string) position {
	for ; at != ""; at = at[:max(0, strings.LastIndexByte(at, '/'))] {
		if pos, ok := d.positions[at]; ok {
			return pos
		}
	}
	return position{}
}

// Relocated gives an error, which has lines and columns of the document as it was
// sent, those of d, which says the same in another text. A line of a template or
// of an expression stays, and the message says where that text stands.
func (d *Document) Relocated(err error, sent *Document) error {
	e, ok := errors.AsType[*fanfare.Error](err)
	if !ok {
		return err
	}
	for _, part := range append([]*fanfare.Error{e}, e.Details...) {
		switch pos := d.position(part.Pointer); {
		case (position{part.Line, part.Column}) == sent.position(part.Pointer):
			part.Line, part.Column = pos.line, pos.column
		case part.Line > 0 && pos.line > 0:
			part.Message += fmt.Sprintf(", in the text that stands at line %d", pos.line)
		}
	}
	return e
}

// within returns what of a pointer lies below root.
func within(pointer, root string) (string, bool) {
	rest, ok := strings.CutPrefix(pointer, root)
	return rest, ok && root != "" && (rest == "" || rest[0] == '/')
}
