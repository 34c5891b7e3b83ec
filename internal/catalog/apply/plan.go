package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/condition"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

// A Plan holds the changes that a document makes to a snapshot.
type Plan struct {
	opt             *Options
	Document        *document.Document
	actor           *audit.Actor
	From, To        *catalog.Snapshot
	Service         *catalog.ServiceSnapshot // in to
	Diff            catalog.Diff
	Records         []control.ConfigRecord
	Files           []control.FileRecord // not kept yet
	ChangedTopics   []*catalog.Topic     // new or changed
	DeletedTopics   []*catalog.Topic     // deleted
	DeletedChannels []*catalog.Channel   // deleted
	errs            []*fanfare.Error
}

// Options are the functions that check a plan.
type Options struct {
	// CheckConditions compiles the conditions of a topic.
	CheckConditions func(condition.Definition) error

	// CompileTemplate checks the syntax of a template. The pointers of its errors begin with
	// /templates/NAME.
	CompileTemplate func(*catalog.TemplateSource) error

	// DryRunTemplate renders a template for a topic with a schema (true: any data) and the
	// parameters of a rule (nil: none). Without a schema it renders the template as for direct
	// messages. The pointers of its errors begin with /templates/NAME.
	DryRunTemplate func(src *catalog.TemplateSource, schema json.RawMessage, params map[string]string) error

	// DryRunDigest renders a template for a digest of events with the schemas of several topics.
	DryRunDigest func(src *catalog.TemplateSource, schemas []json.RawMessage) error

	// CheckKey checks a DKIM key of a channel; nil checks nothing.
	CheckKey func(*catalog.Channel, *catalog.DKIMKey) error

	// Files says which files templates may have.
	Files filetype.Policy

	// Issuers are the URLs of the issuers of OpenID Connect with which people can sign in.
	Issuers []string

	// File reads a stored file of a template, nil if it is not stored.
	File func(ctx context.Context, sum fanfare.Sum) ([]byte, error)

	Now func() time.Time
}

// New compares a document with a configuration. It returns the plan also with an error.
func New(opt *Options, from *catalog.Snapshot, actor *audit.Actor, d *document.Document) (*Plan, error) {
	pl := &Plan{opt: opt, Document: d, actor: actor, From: from, To: from.Clone(), Diff: catalog.Diff{Changes: []catalog.Change{}}}
	pl.setService()
	pl.setSubscriberSchema()
	if d.DeleteService {
		pl.deleteSubscriberSchema()
		pl.deleteService()
	}
	for _, name := range slices.Sorted(maps.Keys(d.Channels)) {
		pl.channel(name, d.Channels[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Workers)) {
		pl.worker(name, d.Workers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Templates)) {
		pl.template(name, d.Templates[name])
	}
	for _, name := range slices.Sorted(maps.Keys(d.Topics)) {
		pl.topic(name, d.Topics[name])
	}
	pl.notifyChannels()
	pl.references()
	pl.workerReferences()
	if len(pl.errs) == 0 {
		pl.dryRun()
	}
	if len(pl.errs) > 0 {
		return pl, d.Locate(inputerror.Join(pl.errs[:min(len(pl.errs), document.MaxErrors)]))
	}
	return pl, nil
}

// fail notes err, which concerns the member at the pointer.
func (pl *Plan) fail(at string, err error) {
	pl.errs = append(pl.errs, inputerror.WithPrefix(at, err))
}

func (pl *Plan) setService() {
	name := pl.Document.Service
	if pl.Service = pl.To.Services[name]; pl.Service != nil {
		if changes := pl.setServiceSettings(); changes != nil {
			pl.Diff.Add(catalog.KindService, name, "update", changes)
			pl.addServiceRecord(false)
		}
		return
	}
	if !document.NamePattern.MatchString(name) {
		pl.fail("/service", inputerror.Invalid("", document.NameHint, "%s is not a valid name", inputerror.Quote(name)))
	}
	pl.Service = catalog.NewService(pl.serviceNumber(name), name)
	pl.To.Services[name], pl.To.ServiceNames[pl.Service.Number] = pl.Service, name
	pl.setServiceSettings()
	pl.Diff.Add(catalog.KindService, name, "create", nil)
	pl.addServiceRecord(false)
}

// references checks that each template to which a topic refers exists.
func (pl *Plan) references() {
	check := func(at, name string) {
		if spec := pl.Document.Templates[name]; spec != nil {
			if spec.Delete && !pl.Document.DeleteService {
				pl.fail("", &fanfare.Error{Code: fanfare.Conflict, Pointer: inputerror.Pointer("templates", name), Hint: "use another template there first",
					Message: "template " + inputerror.Quote(name) + " cannot be deleted: it is used by " + at})
			}
			return // a template that does not compile was already reported
		}
		if name != "" && pl.Service.Templates[name] == nil {
			pl.fail(at, inputerror.Invalid("", inputerror.DidYouMean(name, maps.Keys(pl.Service.Templates), "the service has no templates"), "unknown template %s", inputerror.Quote(name)))
		}
	}
	for _, t := range catalog.SortedValues(pl.Service.Topics) {
		at := inputerror.Pointer("topics", t.Name)
		check(at+"/template", t.Template)
		check(at+"/digest/template", t.Digest.Template)
		for i, rule := range t.Rules {
			check(fmt.Sprintf("%s/rules/%d/template", at, i), rule.Template)
		}
	}
}

// dryRun checks each template against each topic that uses it, if the document contains the
// template or the topic.
func (pl *Plan) dryRun() {
	used := map[string]bool{}
	run := func(t *catalog.Topic, name string, params map[string]string) {
		src := pl.sourceOf(name)
		if src == nil {
			return
		}
		used[name] = true
		if pl.Document.Topics[t.Name] == nil && !pl.namesContent(name) {
			return
		}
		if err := pl.opt.DryRunTemplate(src, schemaOf(t), params); err != nil {
			pl.failTemplateIn("in topic "+t.Name, err)
		}
	}
	for _, t := range catalog.SortedValues(pl.Service.Topics) {
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
	for name := range pl.Document.Templates {
		if src := pl.sourceOf(name); src != nil && !used[name] && pl.namesContent(name) {
			if err := pl.opt.DryRunTemplate(src, nil, nil); err != nil {
				pl.fail("", err)
			}
		}
	}
}

// namesContent reports whether the document contains the template, or a draft of it.
func (pl *Plan) namesContent(template string) bool {
	spec := pl.Document.Templates[template]
	return spec != nil && spec.Action != document.ActionDiscard
}

// failTemplateIn notes an error of a template, with the place where the template is used.
func (pl *Plan) failTemplateIn(place string, err error) {
	e := inputerror.WithPrefix("", err)
	e.Message += " (" + place + ")"
	pl.errs = append(pl.errs, e)
}

// schemaOf returns the schema of a topic, or a schema that allows anything if the topic has none.
func schemaOf(t *catalog.Topic) json.RawMessage {
	if t.Schema == nil {
		return json.RawMessage("true")
	}
	return t.Schema
}

// nextNumber returns the highest number plus one, starting at 1.
func nextNumber[N ~uint16 | ~uint32](taken iter.Seq[N]) N {
	var highest N
	for n := range taken {
		highest = max(highest, n)
	}
	return highest + 1
}

// addRecord adds the stored form of a member to the plan.
func (pl *Plan) addRecord(kind string, number uint32, name string, body any, deleted bool) {
	b, err := json.Marshal(body)
	if err != nil {
		pl.fail("", fmt.Errorf("%s %s: %w", kind, name, err))
	}
	pl.Records = append(pl.Records, control.ConfigRecord{Kind: kind, Number: number, Service: pl.Service.Number, Name: name, Body: b, Deleted: deleted})
}

// maxAuditValueBytes is the maximum size of a value in the audit log. For a longer value, the log
// only shows that it changed.
const maxAuditValueBytes = 200

// hiddenFields are the fields whose values the audit log does not show: texts, and fields that may
// contain an address.
var hiddenFields = map[string]bool{
	"subject": true, "text": true, "html": true, "json": true, "markdown": true, "page": true, "partials": true, "locales": true, "devices": true, // of templates
	"command": true, "environment": true, "prepare": true, "release": true, // of workers
	"from": true, "sender": true, "reply_to": true, "username": true, "relays": true, // of channels
}

const hiddenValue = "changed"

// rolesField is the field of a service whose values contain addresses if a claim has one.
const rolesField = "roles"

// AuditFields returns the fields of c as the audit log shows them.
func AuditFields(c catalog.Change) []audit.FieldChange {
	var fields []audit.FieldChange
	for _, f := range c.Fields {
		if hiddenFields[f.Field] || f.Field == rolesField && strings.Contains(f.Old+f.New, "@") || len(f.Old) > maxAuditValueBytes || len(f.New) > maxAuditValueBytes {
			f.Old, f.New = "", hiddenValue
		}
		fields = append(fields, f)
	}
	return fields
}

// deleteMember deletes a member of the service. Its number is not reused.
func deleteMember[M any](pl *Plan, members map[string]M, kind, name string, number uint32, body any) {
	delete(members, name)
	pl.Diff.Add(kind, name, "delete", nil)
	pl.addRecord(kind, number, name, body, true)
}
