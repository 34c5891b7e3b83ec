package registry

import (
	"context"
	"errors"
	"fmt"

	"fanfare.dev/fanfare/internal/catalog/apply"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"

	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/store/control"

	"fanfare.dev/fanfare/internal/inputerror"

	"fanfare.dev/fanfare"
)

// errMoved says that the configuration changed while a plan was made.
var errMoved = errors.New("registry: the configuration changed meanwhile")

// Plan checks everything in d, dry-runs each template that it names or that a
// topic in it uses, and returns what Apply would change. It changes nothing.
func (r *Registry) Plan(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	pl, err := apply.New(&r.planOptions, r.config.Load(), audit.ActorOf(ctx), d)
	if err != nil {
		return catalog.Diff{}, err
	}
	err = r.writer.submit(ctx, &job{run: func(w *writer) error {
		if err := w.checkUse(pl); err != nil {
			return err
		}
		for _, t := range pl.ChangedTopics {
			if err := r.opt.Conditions.CheckDefine(t.ConditionKey(), t.ConditionDefinition()); err != nil {
				return inputerror.WithPrefix(inputerror.Pointer("topics", t.Name), err)
			}
		}
		return nil
	}})
	if err != nil {
		return catalog.Diff{}, d.Locate(err)
	}
	return r.withNotes(pl), nil
}

// withNotes returns the changes of a plan with the notes for the user.
func (r *Registry) withNotes(pl *apply.Plan) catalog.Diff {
	diff := pl.Diff
	diff.Notes = append(r.rateNotes(pl.Document.Service, pl.Document.Channels), pl.Notes()...)
	return diff
}

// Apply is Plan, and then makes it so: everything or nothing. Applied again, the
// same document changes nothing and gives an empty Diff. A schema that an active
// filter does not fit, and a rule, topic or channel that goes while there are
// active or paused subscriptions to it, is a Conflict. A schema need not fit paused
// ones: they are refused when they are resumed.
func (r *Registry) Apply(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	pl, err := r.apply(ctx, d, nil)
	if err != nil {
		return catalog.Diff{}, err
	}
	return r.withNotes(pl), nil
}

// apply makes a plan and carries it out, and makes another where the
// configuration moved meanwhile. check, if there is one, is asked about the very
// configuration that is then changed.
func (r *Registry) apply(ctx context.Context, d *document.Document, check func(catalog.Configuration) error) (*apply.Plan, error) {
	for {
		pl, err := apply.New(&r.planOptions, r.config.Load(), audit.ActorOf(ctx), d)
		if check != nil {
			if err := check(catalog.Configuration{Snapshot: pl.From}); err != nil {
				return nil, err
			}
		}
		if err != nil {
			return nil, err
		}
		if len(pl.Diff.Changes) == 0 {
			return pl, nil
		}
		err = r.writer.submit(ctx, &job{run: func(w *writer) error { return w.apply(pl, audit.ActorOf(ctx)) }})
		if errors.Is(err, errMoved) {
			continue
		}
		if err != nil {
			return nil, d.Locate(err)
		}
		return pl, nil
	}
}

// checkUse refuses to delete what subscriptions need that have not ended. The
// index knows the active ones.
func (w *writer) checkUse(pl *apply.Plan) error {
	var wrong []*fanfare.Error
	for _, t := range pl.DeletedTopics {
		n := int64(w.r.opt.Conditions.Len(t.ConditionKey()))
		for of, paused := range w.pausedUse {
			if of.topic == t.Number {
				n += paused
			}
		}
		if n > 0 {
			wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name), n))
		}
	}
	for _, t := range pl.ChangedTopics {
		if n := w.waitingUse[t.Number]; n > 0 && t.Digest.IsZero() {
			wrong = append(wrong, t.DigestInUse(n))
		}
		for of, paused := range w.pausedUse {
			if of.topic == t.Number && of.rule != 0 && paused > 0 && t.RuleName(of.rule) == "" {
				wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name, "rules"), paused))
			}
		}
	}
	for _, c := range pl.DeletedChannels {
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
func (w *writer) apply(pl *apply.Plan, actor *audit.Actor) error {
	r := w.r
	if r.config.Load() != pl.From {
		return errMoved
	}
	if err := w.checkUse(pl); err != nil {
		return err
	}
	for i, t := range pl.ChangedTopics {
		if err := r.opt.Conditions.Define(t.ConditionKey(), t.ConditionDefinition()); err != nil {
			r.restoreTopics(pl, i)
			return inputerror.WithPrefix(inputerror.Pointer("topics", t.Name), err)
		}
	}
	b := control.Batch{Config: pl.Records, Files: pl.Files}
	keys := r.deleteKeysOf(pl, &b)
	for _, c := range pl.Diff.Changes {
		b.AddAudit(actor, audit.Operation{Service: pl.Service.Name, Action: c.Action, Kind: c.Kind, Name: c.Name}, &audit.Detail{Fields: apply.AuditFields(c)})
	}
	if err := r.commit(&b); err != nil {
		r.restoreTopics(pl, len(pl.ChangedTopics))
		return err
	}
	r.config.Store(pl.To)
	for _, k := range keys {
		r.keyring.remove(k.number)
	}
	return nil
}

// restoreTopics gives the first n changed topics back what they said before. A new
// one stays in the index, where nobody asks for it.
func (r *Registry) restoreTopics(pl *apply.Plan, n int) {
	for _, t := range pl.ChangedTopics[:n] {
		if old := pl.From.Topics[t.Number]; old != nil {
			// It was good a moment ago, for the same subscriptions.
			_ = r.opt.Conditions.Define(old.ConditionKey(), old.ConditionDefinition())
		}
	}
}
