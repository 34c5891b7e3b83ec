package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/compat/notifybc/accounts"
	"fanfare.dev/fanfare/internal/compat/notifybc/bounces"
	"fanfare.dev/fanfare/internal/compat/notifybc/configurations"
	"fanfare.dev/fanfare/internal/compat/notifybc/mongoexport"
	"fanfare.dev/fanfare/internal/compat/notifybc/resource"
	"fanfare.dev/fanfare/internal/compat/notifybc/roles"
	"fanfare.dev/fanfare/internal/store/control"
)

// Limits of a request.
const (
	MaxDocuments = 1000
	MaxBodyBytes = 40 << 20
)

// The collections of an installation.
const (
	Subscriptions   = "subscription"
	Notifications   = "notification"
	Administrators  = "administrator"
	AccessTokens    = "accesstoken"
	UserCredentials = "usercredential" //nolint:gosec // the name of a collection
	Configurations  = "configuration"
	Bounces         = "bounce"
)

// Collections lists the collections, in the order in which they should be imported.
var Collections = []string{Configurations, Administrators, UserCredentials, AccessTokens, Bounces, Notifications, Subscriptions}

// ErrExists is the result for a document whose id exists.
var ErrExists = errors.New("a record with this id exists")

// A Skipped is the result for a document that has no counterpart; the import succeeds without it.
type Skipped struct{ Reason string }

func (s *Skipped) Error() string { return s.Reason }

// Core stores subscriptions and notifications. Each result is nil, ErrExists, a *Skipped or the error of one document; err is that of all.
type Core interface {
	ImportSubscriptions(ctx context.Context, documents []map[string]json.RawMessage) (results []error, err error)
	ImportNotifications(ctx context.Context, documents []map[string]json.RawMessage) (results []error, err error)
}

// An Importer imports documents.
type Importer struct {
	core           Core
	records        resource.Records
	service        string
	configurations *configurations.Configurations
	bounces        *bounces.Bounces
}

// New returns an Importer.
func New(core Core, records resource.Records, service string, c *configurations.Configurations, b *bounces.Bounces) *Importer {
	return &Importer{core, records, service, c, b}
}

// A Result is the answer to a request.
type Result struct {
	Stored    int    `json:"stored"`
	Unchanged int    `json:"unchanged"`
	Skipped   []Line `json:"skipped,omitempty"`
	Errors    []Line `json:"errors,omitempty"`
}

// A Line is a document that was not stored.
type Line struct {
	Index   int    `json:"index"` // in the request, from 0
	Message string `json:"message"`
}

// Route returns the route. A request has at most MaxDocuments documents, one on each line.
func (i *Importer) Route() resource.Route {
	return resource.Route{Method: "POST", Path: "/import/{collection}", Who: resource.SuperAdmins, Handle: i.handle}
}

func (i *Importer) handle(r *resource.Request) (resource.Answer, error) {
	body, err := io.ReadAll(io.LimitReader(r.Request.Body, MaxBodyBytes+1))
	switch {
	case err != nil:
		return resource.Answer{}, resource.Bad("the body cannot be read")
	case len(body) > MaxBodyBytes:
		return resource.Answer{}, &roles.Refusal{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the body has more than %d bytes", MaxBodyBytes)}
	}
	var result Result
	var documents []map[string]any
	var members []map[string]json.RawMessage
	var lines []int
	isCore := slices.Contains([]string{Subscriptions, Notifications}, r.PathValue("collection"))
	for n := 0; len(body) > 0; n++ {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		if n >= MaxDocuments {
			return resource.Answer{}, resource.Bad(fmt.Sprintf("the body has more than %d lines", MaxDocuments))
		}
		var err error
		if isCore {
			var m map[string]json.RawMessage
			if m, err = mongoexport.Members(line); err == nil {
				members = append(members, m)
			}
		} else {
			var document map[string]any
			if document, err = mongoexport.Document(line); err == nil {
				documents = append(documents, document)
			}
		}
		if err != nil {
			result.Errors = append(result.Errors, Line{n, err.Error()})
			continue
		}
		lines = append(lines, n)
	}
	results, err := i.store(r, documents, members)
	if err != nil {
		return resource.Answer{}, err
	}
	for at, err := range results {
		skipped, isSkipped := errors.AsType[*Skipped](err)
		switch {
		case err == nil:
			result.Stored++
		case errors.Is(err, ErrExists):
			result.Unchanged++
		case isSkipped:
			result.Skipped = append(result.Skipped, Line{lines[at], skipped.Reason})
		default:
			result.Errors = append(result.Errors, Line{lines[at], messageOf(err)})
		}
	}
	return resource.OK(result)
}

// messageOf returns the text of an error for the person who imports.
func messageOf(err error) string {
	if e, ok := errors.AsType[*fanfare.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// store stores the documents of a request; those of subscriptions and notifications are in members.
func (i *Importer) store(r *resource.Request, documents []map[string]any, members []map[string]json.RawMessage) ([]error, error) {
	ctx := r.Context()
	switch collection := r.PathValue("collection"); collection {
	case Subscriptions:
		return i.core.ImportSubscriptions(ctx, members)
	case Notifications:
		return i.core.ImportNotifications(ctx, members)
	case Administrators:
		return i.put(ctx, accounts.KindAdministrator, documents, administrator)
	case AccessTokens:
		return i.put(ctx, accounts.KindToken, documents, token)
	case UserCredentials:
		return i.put(ctx, accounts.KindCredential, documents, credential)
	case Configurations:
		results, err := i.put(ctx, configurations.Kind, documents, i.configuration)
		i.configurations.Changed()
		return results, err
	case Bounces:
		return i.put(ctx, bounces.Kind, documents, func(d map[string]any) ([]control.NotifyBCRecord, error) { return i.bounces.Encoded(d) })
	default:
		return nil, resource.Bad(fmt.Sprintf("unknown collection %.40q", collection))
	}
}

// put stores the documents whose ids do not exist, in one transaction. convert returns the records of a document; the first one has the
// id that must not exist.
func (i *Importer) put(ctx context.Context, kind string, documents []map[string]any, convert func(map[string]any) ([]control.NotifyBCRecord, error)) ([]error, error) {
	results := make([]error, len(documents))
	var all []control.NotifyBCRecord
	seen := map[string]bool{}
	for at, document := range documents {
		records, err := convert(document)
		if err != nil {
			results[at] = err
			continue
		}
		for n := range records {
			records[n].Service = i.service
		}
		if records[0].Kind == "" {
			records[0].Kind = kind
		}
		old, err := i.records.NotifyBCRecord(ctx, records[0].NotifyBCKey)
		switch {
		case err != nil:
			return nil, err
		case old != nil || seen[records[0].ID]:
			results[at] = ErrExists
			continue
		}
		seen[records[0].ID] = true
		all = append(all, records...)
	}
	if len(all) == 0 {
		return results, nil
	}
	return results, i.records.ChangeNotifyBCRecords(ctx, all)
}

// record returns a record with an id and the given members of a document.
func record(id string, document map[string]any, names ...string) ([]control.NotifyBCRecord, error) {
	body := map[string]any{}
	for _, name := range append(names, "created", "updated", "createdBy", "updatedBy") {
		if v, ok := document[name]; ok {
			body[name] = v
		}
	}
	c := resource.Collection{}
	body["id"] = id
	stored, err := c.Encode(body)
	return []control.NotifyBCRecord{stored}, err
}

func text(document map[string]any, name string) (string, error) {
	v, _ := document[name].(string)
	if v == "" {
		return "", fmt.Errorf("the document has no %s", name)
	}
	return v, nil
}

func administrator(document map[string]any) ([]control.NotifyBCRecord, error) {
	if _, err := text(document, "email"); err != nil {
		return nil, err
	}
	return record(document["id"].(string), document, "email", "username")
}

func token(document map[string]any) ([]control.NotifyBCRecord, error) {
	if _, err := text(document, "userId"); err != nil {
		return nil, err
	}
	if _, ok := document["created"].(string); !ok && document["ttl"] != nil {
		return nil, errors.New("the token has a ttl, but no created")
	}
	return record(accounts.TokenID(document["id"].(string)), document, "name", "ttl", "userId")
}

func credential(document map[string]any) ([]control.NotifyBCRecord, error) {
	administrator, err := text(document, "userId")
	if err != nil {
		return nil, err
	}
	hash, err := text(document, "password")
	if err == nil {
		err = accounts.CheckHash(hash)
	}
	if err != nil {
		return nil, err
	}
	document["hash"] = hash
	return record(administrator, document, "hash")
}

func (i *Importer) configuration(document map[string]any) ([]control.NotifyBCRecord, error) {
	if document["name"] == "rsa" {
		return nil, &Skipped{"the keys named rsa are not imported: confirmation codes cannot be encrypted"}
	}
	if err := i.configurations.Check(document); err != nil {
		return nil, &Skipped{err.Error()}
	}
	stored, err := i.configurations.Encode(document)
	return []control.NotifyBCRecord{stored}, err
}

// Decode reads the answer to a request.
func Decode(body []byte) (result Result, err error) {
	err = json.Unmarshal(body, &result)
	return result, err
}
