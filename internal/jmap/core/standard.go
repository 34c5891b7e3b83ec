package core

import (
	"errors"
	"fmt"
	"slices"
)

// GetArguments are those of /get (RFC 8620, section 5.1).
type GetArguments struct {
	InAccount
	IDs        *[]ID     `json:"ids"`
	Properties *[]string `json:"properties"`
}

// GetResult is the result of /get.
type GetResult struct {
	AccountID ID     `json:"accountId"`
	State     string `json:"state"`
	List      []any  `json:"list"`
	NotFound  []ID   `json:"notFound"`
}

// Check checks the number of ids and removes repeated ones. known are the properties of the type.
func (a *GetArguments) Check(c *Call, known []string) error {
	if a.Properties != nil {
		for _, p := range *a.Properties {
			if !slices.Contains(known, p) {
				return Fail(InvalidArguments, fmt.Sprintf("the argument properties has %.80q, which is not a property of the type", p))
			}
		}
	}
	if a.IDs == nil {
		return nil
	}
	if len(*a.IDs) > c.Limits.MaxObjectsInGet {
		return Fail(RequestTooLarge, fmt.Sprintf("%d ids are more than maxObjectsInGet, which is %d", len(*a.IDs), c.Limits.MaxObjectsInGet))
	}
	seen := map[ID]bool{}
	var ids []ID
	for _, id := range *a.IDs {
		resolved, ok := c.Resolve(id)
		if !ok {
			resolved = id // nobody has it, so that it is in notFound
		}
		if !seen[resolved] {
			seen[resolved] = true
			ids = append(ids, resolved)
		}
	}
	a.IDs = &ids
	return nil
}

// Wants reports whether a property was asked for.
func (a *GetArguments) Wants(property string) bool {
	return a.Properties == nil || property == "id" || slices.Contains(*a.Properties, property)
}

// Pick removes the properties that were not asked for.
func (a *GetArguments) Pick(record map[string]any) map[string]any {
	for name := range record {
		if !a.Wants(name) {
			delete(record, name)
		}
	}
	return record
}

// ChangesArguments are those of /changes (RFC 8620, section 5.2).
type ChangesArguments struct {
	InAccount
	SinceState *string      `json:"sinceState"`
	MaxChanges *UnsignedInt `json:"maxChanges"`
}

// Check checks the arguments, and returns the largest number of changes, or 0 if there is no limit.
func (a *ChangesArguments) Check() (most int, err error) {
	if a.SinceState == nil {
		return 0, Fail(InvalidArguments, "the argument sinceState is missing")
	}
	if a.MaxChanges == nil {
		return 0, nil
	}
	if *a.MaxChanges == 0 {
		return 0, Fail(InvalidArguments, "the argument maxChanges must be greater than 0")
	}
	return int(*a.MaxChanges), nil
}

// ChangesResult is the result of /changes.
type ChangesResult struct {
	AccountID ID     `json:"accountId"`
	OldState  string `json:"oldState"`
	NewState  string `json:"newState"`
	More      bool   `json:"hasMoreChanges"`
	Created   []ID   `json:"created"`
	Updated   []ID   `json:"updated"`
	Destroyed []ID   `json:"destroyed"`
}

// SetArguments are those of /set (RFC 8620, section 5.3).
type SetArguments struct {
	InAccount
	IfInState *string `json:"ifInState"`
	Create    Object  `json:"create"`
	Update    Object  `json:"update"`
	Destroy   []ID    `json:"destroy"`
}

// Check checks the number of records, and that each is an object.
func (a *SetArguments) Check(c *Call) error {
	if n := len(a.Create) + len(a.Update) + len(a.Destroy); n > c.Limits.MaxObjectsInSet {
		return Fail(RequestTooLarge, fmt.Sprintf("%d records are more than maxObjectsInSet, which is %d", n, c.Limits.MaxObjectsInSet))
	}
	for _, m := range a.Create {
		if !ID(m.Name).Valid() {
			return Fail(InvalidArguments, fmt.Sprintf("the creation id %.80q is not valid: use 1 to 255 letters, digits, - and _", m.Name))
		}
		if !isObject(m.Value) {
			return Fail(InvalidArguments, fmt.Sprintf("the record %.80q to create is not an object", m.Name))
		}
	}
	for _, m := range a.Update {
		if !isObject(m.Value) {
			return Fail(InvalidArguments, fmt.Sprintf("the patch of %.80q is not an object", m.Name))
		}
	}
	return nil
}

// SetResult is the result of /set.
type SetResult struct {
	AccountID    ID                   `json:"accountId"`
	OldState     string               `json:"oldState"`
	NewState     string               `json:"newState"`
	Created      map[string]any       `json:"created"`
	Updated      map[ID]any           `json:"updated"`
	Destroyed    []ID                 `json:"destroyed"`
	NotCreated   map[string]*SetError `json:"notCreated"`
	NotUpdated   map[ID]*SetError     `json:"notUpdated"`
	NotDestroyed map[ID]*SetError     `json:"notDestroyed"`
}

// DidCreate adds a record; properties are those that the client does not know, with id.
func (r *SetResult) DidCreate(creation string, properties map[string]any) {
	if r.Created == nil {
		r.Created = map[string]any{}
	}
	r.Created[creation] = properties
}

// DidUpdate adds a record; properties are those that changed in addition to the patch, or nil.
func (r *SetResult) DidUpdate(id ID, properties map[string]any) {
	if r.Updated == nil {
		r.Updated = map[ID]any{}
	}
	if properties == nil {
		r.Updated[id] = nil
		return
	}
	r.Updated[id] = properties
}

// DidNotCreate adds a failure.
func (r *SetResult) DidNotCreate(creation string, e *SetError) {
	if r.NotCreated == nil {
		r.NotCreated = map[string]*SetError{}
	}
	r.NotCreated[creation] = e
}

// DidNotUpdate adds a failure.
func (r *SetResult) DidNotUpdate(id ID, e *SetError) {
	if r.NotUpdated == nil {
		r.NotUpdated = map[ID]*SetError{}
	}
	r.NotUpdated[id] = e
}

// DidNotDestroy adds a failure.
func (r *SetResult) DidNotDestroy(id ID, e *SetError) {
	if r.NotDestroyed == nil {
		r.NotDestroyed = map[ID]*SetError{}
	}
	r.NotDestroyed[id] = e
}

// QueryArguments are those of /query (RFC 8620, section 5.5).
type QueryArguments struct {
	InAccount
	Filter         *Filter      `json:"filter"`
	Sort           []Comparator `json:"sort"`
	Position       Int          `json:"position"`
	Anchor         *ID          `json:"anchor"`
	AnchorOffset   Int          `json:"anchorOffset"`
	Limit          *UnsignedInt `json:"limit"`
	CalculateTotal bool         `json:"calculateTotal"`
}

// A Comparator is one key of a sort order.
type Comparator struct {
	Property  string `json:"property"`
	Ascending *bool  `json:"isAscending"`
	Collation string `json:"collation"`
	Keyword   string `json:"keyword"` // RFC 8621, section 4.4.2
}

// Descends reports whether the order is reversed.
func (c *Comparator) Descends() bool { return c.Ascending != nil && !*c.Ascending }

// QueryResult is the result of /query.
type QueryResult struct {
	AccountID  ID     `json:"accountId"`
	QueryState string `json:"queryState"`
	CanChanges bool   `json:"canCalculateChanges"`
	Position   int    `json:"position"`
	IDs        []ID   `json:"ids"`
	Total      *int   `json:"total,omitempty"`
	Limit      *int   `json:"limit,omitempty"`
}

// Window sets the ids of a result to the part of all results that the arguments ask for, of at most most ids.
func (a *QueryArguments) Window(all []ID, most int) (*QueryResult, error) {
	r := &QueryResult{AccountID: a.AccountID}
	begin := int(a.Position)
	if a.Anchor != nil {
		at := slices.Index(all, *a.Anchor)
		if at < 0 {
			return nil, Fail(AnchorNotFound, "")
		}
		begin = max(0, at+int(a.AnchorOffset))
	} else if begin < 0 {
		begin = max(0, len(all)+begin)
	}
	limit := most
	if a.Limit != nil && int(*a.Limit) <= most {
		limit = int(*a.Limit)
	} else {
		r.Limit = &most
	}
	r.Position, r.IDs = begin, []ID{}
	if begin < len(all) {
		r.IDs = all[begin:min(len(all), begin+limit)]
	}
	if r.Limit != nil && a.Limit == nil && len(r.IDs) < most {
		r.Limit = nil // the server's limit made no difference
	}
	if a.CalculateTotal {
		total := len(all)
		r.Total = &total
	}
	return r, nil
}

// QueryChangesArguments are those of /queryChanges (RFC 8620, section 5.6).
type QueryChangesArguments struct {
	InAccount
	Filter          *Filter      `json:"filter"`
	Sort            []Comparator `json:"sort"`
	SinceQueryState *string      `json:"sinceQueryState"`
	MaxChanges      *UnsignedInt `json:"maxChanges"`
	UpToID          *ID          `json:"upToId"`
	CalculateTotal  bool         `json:"calculateTotal"`
}

// QueryChangesResult is the result of /queryChanges.
type QueryChangesResult struct {
	AccountID ID      `json:"accountId"`
	OldState  string  `json:"oldQueryState"`
	NewState  string  `json:"newQueryState"`
	Total     *int    `json:"total,omitempty"`
	Removed   []ID    `json:"removed"`
	Added     []Added `json:"added"`
}

// Added is a record that came into the results of a query, or moved in them.
type Added struct {
	ID    ID  `json:"id"`
	Index int `json:"index"`
}

// Check checks the arguments.
func (a *QueryChangesArguments) Check() error {
	if a.SinceQueryState == nil {
		return Fail(InvalidArguments, "the argument sinceQueryState is missing")
	}
	return nil
}

// Limits of filters.
const (
	maxConditions  = 200
	maxFilterDepth = 16
)

// A Filter is a FilterOperator or a FilterCondition (RFC 8620, section 5.5).
type Filter struct {
	Operator   string // AND, OR or NOT; "" for a condition
	Conditions []*Filter
	Condition  Object
}

// UnmarshalJSON reads a filter.
func (f *Filter) UnmarshalJSON(text []byte) error {
	left := maxConditions
	return f.parse(text, 0, &left)
}

func (f *Filter) parse(text []byte, depth int, left *int) error {
	if *left--; *left < 0 {
		return fmt.Errorf("a filter must have at most %d conditions and operators", maxConditions)
	}
	if depth > maxFilterDepth {
		return fmt.Errorf("the operators of a filter must be nested at most %d levels deep", maxFilterDepth)
	}
	object, err := ParseObject(text)
	if err != nil {
		return errors.New("a filter must be an object")
	}
	operator, is := object.Get("operator")
	if !is {
		f.Condition = object
		return nil
	}
	for _, name := range []string{"AND", "OR", "NOT"} {
		if string(operator) == `"`+name+`"` {
			f.Operator = name
		}
	}
	if f.Operator == "" {
		return errors.New("the operator of a filter must be AND, OR or NOT")
	}
	conditions, has := object.Get("conditions")
	list, err := parseList(conditions)
	if !has || err != nil || len(object) != 2 {
		return errors.New("an operator of a filter must have a list of conditions and nothing else")
	}
	for _, one := range list {
		below := &Filter{}
		if err := below.parse(one, depth+1, left); err != nil {
			return err
		}
		f.Conditions = append(f.Conditions, below)
	}
	return nil
}

// Matches evaluates a filter; a nil filter matches. one evaluates a condition.
func (f *Filter) Matches(one func(*Filter) bool) bool {
	if f == nil {
		return true
	}
	switch f.Operator {
	case "AND":
		return !slices.ContainsFunc(f.Conditions, func(c *Filter) bool { return !c.Matches(one) })
	case "OR":
		return slices.ContainsFunc(f.Conditions, func(c *Filter) bool { return c.Matches(one) })
	case "NOT":
		return !slices.ContainsFunc(f.Conditions, func(c *Filter) bool { return c.Matches(one) })
	}
	return one(f)
}

// Each calls visit with each condition until it returns an error.
func (f *Filter) Each(visit func(*Filter) error) error {
	if f == nil {
		return nil
	}
	if f.Operator == "" {
		return visit(f)
	}
	for _, c := range f.Conditions {
		if err := c.Each(visit); err != nil {
			return err
		}
	}
	return nil
}
