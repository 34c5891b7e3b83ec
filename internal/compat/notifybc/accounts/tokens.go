package accounts

import (
	"context"
	"math"

	"fanfare.dev/fanfare/internal/compat/notifybc/query"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
)

// tokenFields returns the known members of a token in a body.
func tokenFields(body resource.Record) (resource.Record, error) {
	known := resource.Record{}
	name, err := resource.Text(body, "name", false, maxNameBytes)
	if err != nil {
		return nil, err
	}
	if name != "" {
		known["name"] = name
	}
	if v := body["ttl"]; v != nil {
		ttl, ok := v.(float64)
		if !ok || ttl <= 0 || ttl > maxTTLSeconds || ttl != math.Trunc(ttl) {
			return nil, resource.Bad("ttl must be a number of seconds that is greater than 0")
		}
		known["ttl"] = ttl
	}
	return known, nil
}

// issue stores a new token of an administrator, and returns it with its record.
func (a *Accounts) issue(r *resource.Request, administrator string, body resource.Record, by *roles.Caller) (token string, stored resource.Record, err error) {
	known, err := tokenFields(body)
	if err != nil {
		return "", nil, err
	}
	n := 0
	var expired []control.NotifyBCKey
	err = a.tokens.Each(r.Context(), func(one resource.Record) bool {
		switch {
		case one["userId"] != administrator:
		case a.expired(one):
			expired = append(expired, a.tokens.Key(one["id"].(string)))
		default:
			n++
		}
		return true
	})
	switch {
	case err != nil:
		return "", nil, err
	case n >= maxTokens:
		return "", nil, resource.Bad("the administrator has too many access tokens: delete some of them")
	}
	token = newToken()
	known["userId"] = administrator
	stored = a.tokens.New(known, by)
	stored["id"] = TokenID(token)
	encoded, err := a.tokens.Encode(stored)
	if err == nil {
		err = a.tokens.ChangeNotifyBCRecords(r.Context(), []control.NotifyBCRecord{encoded}, expired...)
	}
	return token, stored, err
}

// shown returns a token as the API returns it.
func shown(token resource.Record, id string) resource.Record {
	r := resource.Record{"id": id}
	for _, name := range []string{"name", "ttl", "userId", "created", "updated"} {
		if v, ok := token[name]; ok {
			r[name] = v
		}
	}
	return r
}

func (a *Accounts) createToken(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	administrator, err := a.administrator(r)
	if err != nil {
		return resource.Answer{}, err
	}
	token, stored, err := a.issue(r, administrator["id"].(string), body, &r.Caller)
	if err != nil {
		return resource.Answer{}, err
	}
	return resource.OK(shown(stored, token))
}

// find returns the tokens of an administrator that match a query. A where may name a token by its text.
func (a *Accounts) find(ctx context.Context, administrator string, q *query.Query) (found []resource.Record, err error) {
	texts := map[string]string{}
	for _, text := range q.Paths().IDs {
		texts[TokenID(text)] = text
	}
	err = a.tokens.Each(ctx, func(one resource.Record) bool {
		if one["userId"] != administrator {
			return true
		}
		id := one["id"].(string)
		match := q.Match(shown(one, id))
		if text, ok := texts[id]; ok && !match {
			match = q.Match(shown(one, text))
		}
		if match {
			found = append(found, one)
		}
		return q.Err() == nil
	})
	if err == nil && q.Err() != nil {
		err = resource.Bad(q.Err().Error())
	}
	return found, err
}

// selected returns the tokens that a request is about.
func (a *Accounts) selected(r *resource.Request) (found []resource.Record, q *query.Query, err error) {
	administrator, err := a.administrator(r)
	if err != nil {
		return nil, nil, err
	}
	if q, err = r.Query(); err != nil {
		return nil, nil, err
	}
	found, err = a.find(r.Context(), administrator["id"].(string), q)
	return found, q, err
}

func (a *Accounts) listTokens(r *resource.Request) (resource.Answer, error) {
	found, q, err := a.selected(r)
	if err != nil {
		return resource.Answer{}, err
	}
	for i, one := range found {
		found[i] = shown(one, one["id"].(string))
	}
	return resource.OK(q.Page(found))
}

func (a *Accounts) patchTokens(r *resource.Request) (resource.Answer, error) {
	body, err := r.Body()
	if err != nil {
		return resource.Answer{}, err
	}
	if _, ok := body["userId"]; ok {
		return resource.Answer{}, resource.Refused()
	}
	known, err := tokenFields(body)
	if err != nil {
		return resource.Answer{}, err
	}
	found, _, err := a.selected(r)
	if err != nil {
		return resource.Answer{}, err
	}
	var put []control.NotifyBCRecord
	for _, one := range found {
		changed := resource.Patched(one, known)
		a.tokens.Touch(changed, &r.Caller)
		stored, err := a.tokens.Encode(changed)
		if err != nil {
			return resource.Answer{}, err
		}
		put = append(put, stored)
	}
	if len(put) > 0 {
		if err := a.tokens.ChangeNotifyBCRecords(r.Context(), put); err != nil {
			return resource.Answer{}, err
		}
	}
	return resource.Counted(len(put))
}

func (a *Accounts) deleteTokens(r *resource.Request) (resource.Answer, error) {
	found, _, err := a.selected(r)
	if err != nil {
		return resource.Answer{}, err
	}
	var keys []control.NotifyBCKey
	for _, one := range found {
		keys = append(keys, a.tokens.Key(one["id"].(string)))
	}
	if len(keys) > 0 {
		if err := a.tokens.ChangeNotifyBCRecords(r.Context(), nil, keys...); err != nil {
			return resource.Answer{}, err
		}
	}
	return resource.Counted(len(keys))
}
