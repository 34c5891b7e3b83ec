package apply

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/audit"
	"fanfare.dev/fanfare/internal/catalog/document"
	"fanfare.dev/fanfare/internal/inputerror"
	"fanfare.dev/fanfare/internal/store/control"
)

const maxTitleBytes = 512

// serviceNumber is the number that the name had before it was deleted, or a new
// one.
func (pl *Plan) serviceNumber(name string) uint32 {
	for number, known := range pl.To.ServiceNames {
		if known == name {
			return number
		}
	}
	return nextNumber(maps.Keys(pl.To.ServiceNames))
}

// setServiceSettings applies title, budget, approval and limits, and returns the fields that changed.
func (pl *Plan) setServiceSettings() (changes []audit.FieldChange) {
	if title := pl.Document.Title; title != nil && *title != pl.Service.Title {
		if len(*title) > maxTitleBytes {
			pl.fail("/title", inputerror.TooLarge("", len(*title), maxTitleBytes))
		}
		changes = append(changes, audit.FieldChange{Field: "title", Old: pl.Service.Title, New: *title})
		pl.Service.Title = *title
	}
	if change, changed := pl.setBudget(); changed {
		changes = append(changes, change)
	}
	return slices.Concat(changes, pl.setApproval(), pl.setSendApproval(), pl.setLimits(), pl.setPages(), pl.setMailDomains(), pl.setRoles(), pl.setNotify())
}

func (pl *Plan) addServiceRecord(deleted bool) {
	body, _ := json.Marshal(catalog.ServiceBody{Title: pl.Service.Title, Budget: catalog.Duration(pl.Service.MatchingBudget), Approval: pl.Service.Approval, ServiceLimits: pl.Service.Limits, SendApproval: pl.Service.SendApproval, Pages: pl.Service.Pages, MailDomains: pl.Service.MailDomains, Roles: pl.Service.Roles, Notify: pl.Service.Notify}) // plain: cannot fail
	pl.Records = append(pl.Records, control.ConfigRecord{Kind: catalog.KindService, Number: pl.Service.Number, Name: pl.Service.Name, Body: body, Deleted: deleted})
}

// deleteService deletes the service and its members. checkUse refuses it if something is in use.
func (pl *Plan) deleteService() {
	for _, c := range catalog.SortedValues(pl.Service.Channels) {
		pl.channel(c.Name, &document.ChannelSpec{Delete: true})
	}
	for _, t := range catalog.SortedValues(pl.Service.Topics) {
		pl.topic(t.Name, &document.TopicSpec{Delete: true})
	}
	for _, w := range catalog.SortedValues(pl.Service.Workers) {
		pl.worker(w.Name, &document.WorkerSpec{Delete: true})
	}
	for _, t := range catalog.SortedValues(pl.Service.Templates) {
		pl.template(t.Name, &document.TemplateSpec{Delete: true})
	}
	for of := range pl.To.Drafts { // of what was never published
		if of.Service == pl.Service.Name {
			pl.discard(of.Template)
		}
	}
	delete(pl.To.Services, pl.Service.Name) // its number and name stay taken
	pl.Diff.Add(catalog.KindService, pl.Service.Name, "delete", nil)
	pl.addServiceRecord(true)
}

// setApproval applies the approval settings of the document.
func (pl *Plan) setApproval() []audit.FieldChange {
	was := pl.Service.Approval
	if above := pl.Document.HoldAbove; above != nil {
		pl.Service.Approval.HoldAbove = *above
	}
	if exempt := pl.Document.HoldExemptUrgent; exempt != nil {
		pl.Service.Approval.HoldExemptUrgent = *exempt
	}
	return catalog.FieldChanges(was, pl.Service.Approval)
}

// setSendApproval applies the setting of the document that says whether sends need an approval.
func (pl *Plan) setSendApproval() []audit.FieldChange {
	asked := pl.Document.SendApproval
	if asked == nil {
		return nil
	}
	was, is := cmp.Or(pl.Service.SendApproval, catalog.SendApprovalRequired), cmp.Or(*asked, catalog.SendApprovalRequired)
	if was == is {
		return nil
	}
	pl.Service.SendApproval = is
	return []audit.FieldChange{{Field: "send_approval", Old: was, New: is}}
}

// setBudget applies the budget of the document. The budget protects other services, so the admin of
// a single service cannot raise it.
func (pl *Plan) setBudget() (change audit.FieldChange, changed bool) {
	asked := pl.Document.MatchingBudget
	if asked == nil || time.Duration(*asked) == pl.Service.MatchingBudget {
		return change, false
	}
	was := pl.Service.Budget()
	pl.Service.MatchingBudget = time.Duration(*asked)
	switch is := pl.Service.Budget(); {
	case is > catalog.MaxBudget:
		pl.fail("/matching_budget", inputerror.Invalid("", fmt.Sprintf("use at most %s", catalog.Duration(catalog.MaxBudget)), "a budget of %s per event is too high", catalog.Duration(is)))
	case pl.actor != nil && pl.actor.Tenant != "" && is > was:
		pl.fail("/matching_budget", &fanfare.Error{Code: fanfare.Forbidden, Hint: "to raise it, use a key that is valid for all services",
			Message: "the budget protects other services: a key for a single service cannot raise it"})
	}
	return audit.FieldChange{Field: "matching_budget", Old: catalog.Duration(was).String(), New: catalog.Duration(pl.Service.Budget()).String()}, true
}

// setPages applies the page settings of the document.
func (pl *Plan) setPages() []audit.FieldChange {
	p := pl.Document.Pages
	if p == nil {
		return nil
	}
	was, is := pl.Service.Pages, *p
	pl.Service.Pages = is
	changes := catalog.FieldChanges(was, is)
	for i := range changes {
		changes[i].Field = "pages." + changes[i].Field
	}
	return changes
}

// setMailDomains applies the mail domains of the document. A domain belongs to one service, and decides where mail from outside goes, so the admin of a
// single service cannot change them.
func (pl *Plan) setMailDomains() []audit.FieldChange {
	if pl.Document.MailDomains == nil {
		return nil
	}
	was, is := pl.Service.MailDomains, *pl.Document.MailDomains
	if slices.Equal(was, is) {
		return nil
	}
	if pl.actor != nil && pl.actor.Tenant != "" {
		pl.fail("/mail_domains", &fanfare.Error{Code: fanfare.Forbidden, Hint: "to change them, use a key that is valid for all services",
			Message: "mail domains decide which service receives the mail to an address: a key for a single service cannot change them"})
	}
	for i := range is {
		for _, other := range catalog.SortedValues(pl.To.Services) {
			if other.Name == pl.Service.Name || !slices.ContainsFunc(other.MailDomains, func(d catalog.MailDomain) bool { return d.Domain == is[i].Domain }) {
				continue
			}
			pl.fail(inputerror.Pointer("mail_domains", strconv.Itoa(i), "domain"), &fanfare.Error{Code: fanfare.Conflict, Hint: "remove it there first",
				Message: fmt.Sprintf("%s is a mail domain of the service %s", is[i].Domain, inputerror.Quote(other.Name))})
		}
	}
	pl.Service.MailDomains = is
	change := audit.FieldChange{Field: "mail_domains", Old: domainNames(was), New: domainNames(is)}
	if change.Old == change.New {
		change.New += " (another catch-all or order)"
	}
	return []audit.FieldChange{change}
}

// setRoles applies the roles of the document.
func (pl *Plan) setRoles() []audit.FieldChange {
	if pl.Document.Roles == nil || slices.Equal(pl.Service.Roles, *pl.Document.Roles) {
		return nil
	}
	was := pl.Service.Roles
	pl.Service.Roles = *pl.Document.Roles
	return []audit.FieldChange{{Field: rolesField, Old: roleNames(was), New: roleNames(pl.Service.Roles)}}
}

// roleNames lists grants.
func roleNames(list []catalog.RoleGrant) string {
	names := make([]string, len(list))
	for i, g := range list {
		names[i] = g.Role + " for " + g.Claim + " " + g.Value + " of " + g.Issuer
	}
	return strings.Join(names, ", ")
}

// domainNames lists domains. It does not name the address of a catch-all, because the audit log has no addresses.
func domainNames(list []catalog.MailDomain) string {
	names := make([]string, len(list))
	for i := range list {
		if names[i] = list[i].Domain; list[i].CatchAll != "" {
			names[i] += " (catch-all)"
		}
	}
	return strings.Join(names, ", ")
}

// setLimits applies the limits of the document.
func (pl *Plan) setLimits() []audit.FieldChange {
	was := pl.Service.Limits
	if rate := pl.Document.Rate; rate != nil {
		pl.Service.Limits.Rate = *rate
	}
	if quota := pl.Document.DailyQuota; quota != nil {
		pl.Service.Limits.DailyQuota = *quota
	}
	if bounces := pl.Document.Bounces; bounces != nil {
		pl.Service.Limits.Bounces = *bounces
	}
	return catalog.FieldChanges(was, pl.Service.Limits)
}

// setSubscriberSchema applies the subscriber schema of the document; null removes it.
func (pl *Plan) setSubscriberSchema() {
	text := pl.Document.SubscriberSchema
	if len(text) == 0 {
		return
	}
	is := []byte("null")
	if old := pl.To.SubscriberSchemas[pl.Service.Number]; old != nil {
		is = old.Text
	}
	if bytes.Equal(text, is) {
		return
	}
	pl.Diff.Add(catalog.KindService, pl.Service.Name, "update", []audit.FieldChange{{Field: "subscriber_schema", Old: string(is), New: string(text)}})
	if string(text) == "null" {
		pl.deleteSubscriberSchema()
		return
	}
	schema, err := catalog.NewSubscriberSchema(text)
	if err != nil {
		pl.fail("/subscriber_schema", err)
		return
	}
	pl.To.SubscriberSchemas[pl.Service.Number] = schema
	pl.addSubscriberSchemaRecord(text, false)
}

// deleteSubscriberSchema removes the schema, if there is one.
func (pl *Plan) deleteSubscriberSchema() {
	if pl.To.SubscriberSchemas[pl.Service.Number] != nil {
		delete(pl.To.SubscriberSchemas, pl.Service.Number)
		pl.addSubscriberSchemaRecord([]byte("{}"), true)
	}
}

func (pl *Plan) addSubscriberSchemaRecord(text []byte, deleted bool) {
	pl.Records = append(pl.Records, control.ConfigRecord{Kind: catalog.KindSubscriberSchema, Number: pl.Service.Number, Service: pl.Service.Number, Name: pl.Service.Name, Body: text, Deleted: deleted})
}
