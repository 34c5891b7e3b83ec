package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"fanfare.dev/fanfare/internal/jmap/core"
	"fanfare.dev/fanfare/internal/mailbox"
)

// quotaProperties are those of a Quota (RFC 9425, section 4).
var quotaProperties = []string{"id", "resourceType", "used", "hardLimit", "scope", "name", "types", "warnLimit", "softLimit", "description"}

// quotas returns the Quota objects of an account: one for each limit.
func quotas(a *mailbox.Account) []map[string]any {
	list := []map[string]any{}
	add := func(id core.ID, resource, name string, used, limit int64) {
		if limit > 0 {
			list = append(list, map[string]any{"id": id, "resourceType": resource, "used": used, "hardLimit": limit, "scope": "account", "name": name,
				"types": []string{"Email"}, "warnLimit": nil, "softLimit": nil, "description": nil})
		}
	}
	add("octets", "octets", "Storage", a.Quota.Bytes, a.Quota.MaxBytes)
	add("count", "count", "Messages", a.Quota.Messages, a.Quota.MaxMessages)
	return list
}

func (m *Methods) quotaAccount(ctx context.Context, c *core.Call) (mailbox.Account, error) {
	id, err := account(c)
	if err != nil {
		return mailbox.Account{}, err
	}
	of, err := m.store.Account(ctx, id)
	return of, accountError(err)
}

// quotaGet is Quota/get (section 4.1).
func (m *Methods) quotaGet(ctx context.Context, c *core.Call, a *core.GetArguments) (any, error) {
	if err := a.Check(c, quotaProperties); err != nil {
		return nil, err
	}
	of, err := m.quotaAccount(ctx, c)
	if err != nil {
		return nil, err
	}
	r := &core.GetResult{AccountID: a.AccountID, State: StateOf(of.State), List: []any{}, NotFound: []core.ID{}}
	all := quotas(&of)
	if a.IDs == nil {
		for _, q := range all {
			r.List = append(r.List, a.Pick(q))
		}
		return r, nil
	}
	for _, id := range *a.IDs {
		i := slices.IndexFunc(all, func(q map[string]any) bool { return q["id"] == id })
		if i < 0 {
			r.NotFound = append(r.NotFound, id)
			continue
		}
		r.List = append(r.List, a.Pick(all[i]))
	}
	return r, nil
}

// quotaChanges is Quota/changes (section 4.2). Each change of the account can change its use.
func (m *Methods) quotaChanges(ctx context.Context, c *core.Call, a *core.ChangesArguments) (any, error) {
	if _, err := a.Check(); err != nil {
		return nil, err
	}
	since, err := parseState(*a.SinceState)
	if err != nil {
		return nil, err
	}
	of, err := m.quotaAccount(ctx, c)
	if err != nil {
		return nil, err
	}
	if since.record != allRecords || since.seq > of.State || since.seq < of.State && a.MaxChanges != nil && int(*a.MaxChanges) < 2 {
		return nil, errCannotCalculate
	}
	r := &core.ChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(of.State), Created: []core.ID{}, Updated: []core.ID{}, Destroyed: []core.ID{}}
	if since.seq < of.State {
		for _, id := range []core.ID{"octets", "count"} { // a limit can have come or gone
			if slices.ContainsFunc(quotas(&of), func(q map[string]any) bool { return q["id"] == id }) {
				r.Updated = append(r.Updated, id)
			} else {
				r.Destroyed = append(r.Destroyed, id)
			}
		}
	}
	return mailboxChangesResult{r, nil}, nil
}

// queryQuotas returns the quotas that match, sorted.
func queryQuotas(of *mailbox.Account, filter *core.Filter, sort []core.Comparator) ([]core.ID, error) {
	tests := map[*core.Filter]func(q map[string]any) bool{}
	err := filter.Each(func(f *core.Filter) error {
		var name, scope, resource, kind string
		if err := condition(f.Condition, map[string]any{"name": &name, "scope": &scope, "resourceType": &resource, "type": &kind}); err != nil {
			return err
		}
		tests[f] = func(q map[string]any) bool {
			return (name == "" || strings.Contains(strings.ToLower(q["name"].(string)), strings.ToLower(name))) && (scope == "" || scope == "account") &&
				(resource == "" || resource == q["resourceType"]) && (kind == "" || kind == "Email")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := quotas(of)
	for i := len(sort) - 1; i >= 0; i-- {
		property := sort[i].Property
		if property != "name" && property != "used" {
			return nil, core.Fail(core.UnsupportedSort, fmt.Sprintf("quotas cannot be sorted by %.80q; use name or used", property))
		}
		slices.SortStableFunc(all, directed(func(a, b map[string]any) int {
			if property == "name" {
				return strings.Compare(a["name"].(string), b["name"].(string))
			}
			return int(min(1, max(-1, a["used"].(int64)-b["used"].(int64))))
		}, sort[i].Descends()))
	}
	ids := []core.ID{}
	for _, q := range all {
		if filter.Matches(func(f *core.Filter) bool { return tests[f](q) }) {
			ids = append(ids, q["id"].(core.ID))
		}
	}
	return ids, nil
}

// quotaQuery is Quota/query (section 4.3).
func (m *Methods) quotaQuery(ctx context.Context, c *core.Call, a *core.QueryArguments) (any, error) {
	of, err := m.quotaAccount(ctx, c)
	if err != nil {
		return nil, err
	}
	ids, err := queryQuotas(&of, a.Filter, a.Sort)
	if err != nil {
		return nil, err
	}
	r, err := a.Window(ids, maxQuery)
	if err != nil {
		return nil, err
	}
	r.QueryState, r.CanChanges = StateOf(of.State), true
	return r, nil
}

// quotaQueryChanges is Quota/queryChanges (section 4.4).
func (m *Methods) quotaQueryChanges(ctx context.Context, c *core.Call, a *core.QueryChangesArguments) (any, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	since, err := parseState(*a.SinceQueryState)
	if err != nil {
		return nil, err
	}
	of, err := m.quotaAccount(ctx, c)
	if err != nil {
		return nil, err
	}
	if since.record != allRecords || since.seq > of.State {
		return nil, errCannotCalculate
	}
	ids, err := queryQuotas(&of, a.Filter, a.Sort)
	if err != nil {
		return nil, err
	}
	r := &core.QueryChangesResult{AccountID: a.AccountID, OldState: since.String(), NewState: StateOf(of.State), Removed: []core.ID{}, Added: []core.Added{}}
	if since.seq < of.State {
		r.Removed = []core.ID{"octets", "count"}
		for i, id := range ids {
			r.Added = append(r.Added, core.Added{ID: id, Index: i})
		}
	}
	return finishQueryChanges(a, r, len(ids))
}
