package state

import (
	"context"
	"errors"
	"fmt"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/apply"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// errConfigurationChanged says that the configuration changed while a plan was made.
var errConfigurationChanged = errors.New("the configuration was changed concurrently")

// Plan checks everything in d, dry-runs each template that it names or that a
// topic in it uses, and returns what Apply would change. It changes nothing.
func (r *Catalog) Plan(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	pl, err := apply.New(&r.opt.Apply, r.config.Load(), audit.ActorOf(ctx), d)
	if err != nil {
		return catalog.Diff{}, err
	}
	err = r.writer.Run(ctx, func() error {
		if err := r.checkUse(pl); err != nil {
			return err
		}
		for _, t := range pl.ChangedTopics {
			if err := r.opt.Conditions.CheckDefine(t.ConditionKey(), t.ConditionDefinition()); err != nil {
				return inputerror.WithPrefix(inputerror.Pointer("topics", t.Name), err)
			}
		}
		return nil
	})
	if err != nil {
		return catalog.Diff{}, d.Locate(err)
	}
	return r.withNotes(pl), nil
}

// withNotes returns the changes of a plan with its notes.
func (r *Catalog) withNotes(pl *apply.Plan) catalog.Diff {
	diff := pl.Diff
	diff.Notes = append(r.rateNotes(pl.Document.Service, pl.Document.Channels), pl.Notes()...)
	return diff
}

// Apply plans and commits a document, all or nothing. Applying the same document again changes
// nothing and returns an empty Diff. It is a Conflict if a schema does not fit an active filter,
// or if it deletes a rule, topic or channel that active or paused subscriptions use. A schema need
// not fit paused subscriptions; resuming them is then refused.
func (r *Catalog) Apply(ctx context.Context, d *document.Document) (catalog.Diff, error) {
	pl, err := r.apply(ctx, d, nil)
	if err != nil {
		return catalog.Diff{}, err
	}
	return r.withNotes(pl), nil
}

// apply plans and commits. If the configuration changes in between, it plans again. check, if any,
// is called with the configuration that is changed.
func (r *Catalog) apply(ctx context.Context, d *document.Document, check func(catalog.Configuration) error) (*apply.Plan, error) {
	for {
		pl, err := apply.New(&r.opt.Apply, r.config.Load(), audit.ActorOf(ctx), d)
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
		err = r.writer.Run(ctx, func() error { return r.commitPlan(pl, audit.ActorOf(ctx)) })
		if errors.Is(err, errConfigurationChanged) {
			continue
		}
		if err != nil {
			return nil, d.Locate(err)
		}
		return pl, nil
	}
}

// checkUse refuses to delete what active or paused subscriptions use. The match index knows the
// active ones.
func (r *Catalog) checkUse(pl *apply.Plan) error {
	use := r.writer.Usage()
	var wrong []*fanfare.Error
	subscriptions := func(t *catalog.Topic) int64 {
		n := int64(r.opt.Conditions.Len(t.ConditionKey()))
		for of, paused := range use.Paused {
			if of.Topic == t.Number {
				n += paused
			}
		}
		return n
	}
	for _, t := range pl.DeletedTopics {
		if n := subscriptions(t); n > 0 {
			wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name), n))
		}
	}
	for _, t := range pl.ChangedTopics {
		if n := use.Waiting[t.Number]; n > 0 && t.Digest.IsZero() {
			wrong = append(wrong, t.DigestInUse(n))
		}
		if was := pl.From.Topics[t.Number]; was != nil && was.PerSubscription && !t.PerSubscription {
			if n := subscriptions(t); n > 0 {
				wrong = append(wrong, t.UniqueInUse(n))
			}
		}
		for of, paused := range use.Paused {
			if of.Topic == t.Number && of.Rule != 0 && paused > 0 && t.RuleName(of.Rule) == "" {
				wrong = append(wrong, inUse(inputerror.Pointer("topics", t.Name, "rules"), paused))
			}
		}
	}
	for _, c := range pl.DeletedChannels {
		if n := use.Channels[c.Number]; n > 0 {
			wrong = append(wrong, inUse(inputerror.Pointer("channels", c.Name), n))
		}
	}
	return inputerror.Join(wrong)
}

func inUse(at string, subscriptions int64) *fanfare.Error {
	return &fanfare.Error{Code: fanfare.Conflict, Pointer: at, Hint: "end these subscriptions first",
		Message: fmt.Sprintf("cannot be deleted: %d active or paused subscriptions use it", subscriptions)}
}

// commitPlan stores a plan and puts it in force.
func (r *Catalog) commitPlan(pl *apply.Plan, actor *audit.Actor) error {
	if r.config.Load() != pl.From {
		return errConfigurationChanged
	}
	if err := r.checkUse(pl); err != nil {
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
	if err := r.writer.Commit(&b); err != nil {
		r.restoreTopics(pl, len(pl.ChangedTopics))
		return err
	}
	r.config.Store(pl.To)
	for _, k := range keys {
		r.keyring.remove(k.number)
	}
	return nil
}

// restoreTopics restores the first n changed topics. A new one stays in the index, unused.
func (r *Catalog) restoreTopics(pl *apply.Plan, n int) {
	for _, t := range pl.ChangedTopics[:n] {
		if old := pl.From.Topics[t.Number]; old != nil {
			// The same definition was valid before, for the same subscriptions.
			_ = r.opt.Conditions.Define(old.ConditionKey(), old.ConditionDefinition())
		}
	}
}

// DraftFiles checks the files of an unsaved template, and returns the template in stored form with
// the files that are not stored yet.
func (r *Catalog) DraftFiles(service, name string, parts catalog.TemplateParts) (catalog.TemplateParts, []control.FileRecord, error) {
	return apply.DraftFiles(&r.opt.Apply, r.config.Load(), service, name, parts)
}

// File returns the bytes of a file that a template has.
func (r *Catalog) File(ctx context.Context, sum fanfare.Sum) ([]byte, error) {
	content, err := r.opt.Store.File(ctx, sum)
	if err == nil && fanfare.SumOf(content) != sum {
		err = &fanfare.Error{Code: fanfare.NotFound, Message: "a file of the template is missing from the store: " + sum.String()}
	}
	return content, err
}

// deleteKeysOf adds the deletion of the keys of a deleted service to b.
func (r *Catalog) deleteKeysOf(pl *apply.Plan, b *control.Batch) []*storedKey {
	if !pl.Document.DeleteService {
		return nil
	}
	keys := r.keyring.list(pl.Service.Name)
	for _, k := range keys {
		b.Config = append(b.Config, control.ConfigRecord{Kind: catalog.KindKey, Number: k.number, Service: pl.Service.Number, Name: k.name, Body: []byte("{}"), Deleted: true})
	}
	return keys
}

// ApplyMember applies a document of ParseMember. check is called with the configuration that is
// changed; its error refuses the change. It returns the new configuration.
func (r *Catalog) ApplyMember(ctx context.Context, d *document.Document, check func(catalog.Configuration) error) (catalog.Configuration, error) {
	pl, err := r.apply(ctx, d, check)
	if err != nil {
		return catalog.Configuration{}, err
	}
	return catalog.Configuration{Snapshot: pl.To}, nil
}

// DeleteMember deletes a member, and with a service all its members and keys. It is a Conflict if
// active or paused subscriptions use it. A missing member is no error, unless check returns one.
func (r *Catalog) DeleteMember(ctx context.Context, m document.Member, check func(catalog.Configuration) error) error {
	guarded := func(c catalog.Configuration) error {
		if err := check(c); err != nil {
			return err
		}
		if c.Service(m.Service) == nil {
			return errNothingToDelete
		}
		return nil
	}
	_, err := r.apply(ctx, m.Deletion(), guarded)
	if err == errNothingToDelete { //nolint:errorlint // it comes as it is
		return nil
	}
	return err
}

// errNothingToDelete ends an apply that has nothing to delete. No caller receives it.
var errNothingToDelete = &fanfare.Error{Code: fanfare.NotFound, Message: "nothing to delete"}
